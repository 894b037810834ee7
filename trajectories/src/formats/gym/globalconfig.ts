/**
 * The configuration by which Gym's clients find the gateway: entries without `entrypoint`, so that Gym starts nothing for them.
 * nemo-gym 0.7.0 posts to the environment server, earlier sources and NeMo RL to the agent: it names both.
 */

export type Address = { host: string; port: number };

/** For `GET /global_config_dict_yaml`; JSON is YAML. */
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
