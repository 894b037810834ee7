/** Upper bounds that a gateway or a worker sets on the settings of a run, and the check that finds the first setting above its bound. */

import type { Instance } from '../records/instance.ts';
import type { RunRecord } from '../records/job.ts';
import type { CommonConfig } from './keys.ts';

type Bounded = Pick<RunRecord, 'agent' | 'sandbox' | 'evaluation' | 'ttl'>;

const NUMBERS = {
  max_cpus: ['sandbox.cpus', (run: Bounded) => run.sandbox.cpus],
  max_memory_bytes: ['sandbox.memory_bytes', (run: Bounded) => run.sandbox.memory_bytes],
  max_pids: ['sandbox.pids', (run: Bounded) => run.sandbox.pids],
  max_disk_bytes: ['sandbox.disk_bytes', (run: Bounded) => run.sandbox.disk_bytes],
  max_turns: ['agent.step_limit', (run: Bounded) => run.agent.step_limit],
  max_command_seconds: ['agent.step_timeout', (run: Bounded) => run.agent.step_timeout],
  max_agent_seconds: ['agent.time_limit', (run: Bounded) => run.agent.time_limit],
  max_evaluation_seconds: ['evaluation.timeout', (run: Bounded) => run.evaluation.timeout],
  max_log_bytes: ['evaluation.log_limit', (run: Bounded) => run.evaluation.log_limit],
  max_ttl_seconds: ['ttl', (run: Bounded) => run.ttl],
} as const;

/** The part of the configuration that holds the ceilings. */
export type Ceilings = Pick<CommonConfig, 'max_network' | keyof typeof NUMBERS>;

export type Excess = {
  field: string;
  value: string | number;
  ceiling: string | number;
  /** The configuration key of the ceiling. */
  setting: string;
};

/** What an instance may ask for beside its run. */
type Asking = Pick<Instance, 'needs_egress' | 'environment' | 'plan'>;

/**
 * The first setting of a run, or wish of an instance of it, that exceeds its ceiling; null: none does. A disk without a limit exceeds
 * nothing, because workers apply the ceiling to it.
 */
export function beyondCeiling(run: Bounded, ceilings: Ceilings, instance?: Asking): Excess | null {
  if (ceilings.max_network === 'none') {
    const { agent_network, eval_network } = run.sandbox;
    const asked = { 'sandbox.agent_network': agent_network, 'sandbox.eval_network': eval_network };
    const network = { value: 'egress', ceiling: 'none', setting: 'max_network' } as const;
    for (const [field, value] of Object.entries(asked)) if (value === 'egress') return { field, ...network };
    if (instance?.needs_egress) return { field: 'needs_egress', ...network };
  }
  for (const [setting, [field, read]] of Object.entries(NUMBERS)) {
    const ceiling = ceilings[setting as keyof typeof NUMBERS];
    const value = read(run);
    if (ceiling !== null && value !== null && value > ceiling) {
      return { field, value, ceiling, setting };
    }
  }
  return instance ? instanceBeyondCeiling(instance, ceilings) : null;
}

/** The same for what an instance asks for in its own record, without its network. */
export function instanceBeyondCeiling({ environment, plan }: Asking, ceilings: Ceilings): Excess | null {
  const steps = [...(environment?.setup ?? []), ...(plan?.before ?? []), ...(plan?.after ?? [])];
  const asked = {
    max_cpus: ['environment.cpus', environment?.cpus],
    max_memory_bytes: ['environment.memory_bytes', environment?.memory_bytes],
    max_evaluation_seconds: ['timeout of a step', Math.max(0, ...steps.map(({ timeout }) => timeout))],
  } as const;
  for (const [setting, [field, value]] of Object.entries(asked)) {
    const ceiling = ceilings[setting as keyof typeof asked];
    if (ceiling !== null && value !== undefined && value > ceiling) return { field, value, ceiling, setting };
  }
  return null;
}

/** `where`: the process that enforces the ceiling, whose operator may raise it. */
export const describeExcess = ({ field, value, ceiling, setting }: Excess, where: string): string =>
  `${field}: ${value} is beyond ${ceiling}, the ceiling of ${where}; ask for less, or have its operator raise ${setting}`;
