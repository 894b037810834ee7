/** The agents and their properties. Other code depends on the properties, not on the names. */
type AgentFacts = {
  /** The agent works in a container of the instance; other agents only provide a patch. */
  worksInSandbox: boolean;
  /** The agent requests its turns from the policy of the run. */
  asksPolicy: boolean;
  /** The run stores patches, to which its jobs refer. */
  needsPatches: boolean;
  /** A run may select the agent by name. */
  byName: boolean;
};

export const AGENTS = {
  mini: { worksInSandbox: true, asksPolicy: true, needsPatches: false, byName: true },
  golden: { worksInSandbox: false, asksPolicy: false, needsPatches: false, byName: true },
  noop: { worksInSandbox: false, asksPolicy: false, needsPatches: false, byName: true },
  patch: { worksInSandbox: false, asksPolicy: false, needsPatches: true, byName: true },
  installed: { worksInSandbox: true, asksPolicy: true, needsPatches: false, byName: false },
  external: { worksInSandbox: true, asksPolicy: false, needsPatches: false, byName: false },
} as const satisfies Record<string, AgentFacts>;

export type AgentName = keyof typeof AGENTS;
export const DEFAULT_AGENT: AgentName = 'mini';

type Having<Fact extends keyof AgentFacts, Value extends boolean> = {
  [Name in AgentName]: (typeof AGENTS)[Name][Fact] extends Value ? Name : never;
}[AgentName];
export type SandboxAgent = Having<'worksInSandbox', true>;
export type GivenAgent = Having<'worksInSandbox', false>;

export const AGENT_NAMES = Object.keys(AGENTS) as [AgentName, ...AgentName[]];

export const agentsWith = (fact: Partial<AgentFacts>): AgentName[] =>
  AGENT_NAMES.filter((name) =>
    Object.entries(fact).every(([key, value]) => AGENTS[name][key as keyof AgentFacts] === value),
  );

export const isSandboxAgent = (name: AgentName): name is SandboxAgent => AGENTS[name].worksInSandbox;

/** Returns whether an agent requests turns from the policy; false for an unknown name. */
export const asksPolicy = (name: unknown = DEFAULT_AGENT): boolean =>
  AGENT_NAMES.some((known) => known === name && AGENTS[known].asksPolicy);
