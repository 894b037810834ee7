/**
 * Builds the configuration from which Gym's clients read the address of the gateway. Entries have no `entrypoint`, so Gym starts no server.
 * nemo-gym 0.7.0 posts to the environment server; earlier versions and NeMo RL post to the agent.
 */

export type Address = { host: string; port: number };

/** Returns the body of `GET /global_config_dict_yaml`. The gateway sends JSON, which is valid YAML. */
export function globalConfig(names: readonly string[], at: Address): Record<string, unknown> {
  const blocks = names.flatMap((name): [string, unknown][] => [
    [name, { responses_api_agents: { [name]: { ...at } } }],
    [
      `${name}_environment_server`,
      {
        environment_servers: {
          legacy_agent: { ...at, agent_server: { type: 'responses_api_agents', name } },
        },
      },
    ],
  ]);
  return { head_server: { ...at }, ...Object.fromEntries(blocks) };
}
