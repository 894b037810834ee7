/** The agents that a run may name, and what each of them is. Others ask these facts, and compare no names. */

type AgentFacts = {
  /** It works in a container of the instance; others only give a patch to evaluate. */
  worksInSandbox: boolean;
  /** Its turns are answers of the run's policy. */
  asksPolicy: boolean;
  /** Its patches come with the jobs. */
  needsPatches: boolean;
  /** A run may ask for it by name; others are chosen by the route that a rollout comes in. */
  byName: boolean;
};

export const AGENTS = {
  mini: { worksInSandbox: true, asksPolicy: true, needsPatches: false, byName: true },
  golden: { worksInSandbox: false, asksPolicy: false, needsPatches: false, byName: true },
  noop: { worksInSandbox: false, asksPolicy: false, needsPatches: false, byName: true },
  patch: { worksInSandbox: false, asksPolicy: false, needsPatches: true, byName: true },
  external: { worksInSandbox: true, asksPolicy: false, needsPatches: false, byName: false },
} as const satisfies Record<string, AgentFacts>;

export type AgentName = keyof typeof AGENTS;
/** Of a run that names none. */
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

/** Of a setting as it was given: absent is the default, and an unknown name asks nobody. */
export const asksPolicy = (name: unknown = DEFAULT_AGENT): boolean =>
  AGENT_NAMES.some((known) => known === name && AGENTS[known].asksPolicy);
