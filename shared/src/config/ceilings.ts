/** Checks the settings of a run against the ceilings of a gateway or a worker. */
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

export type Ceilings = Pick<CommonConfig, 'max_network' | keyof typeof NUMBERS>;

export type Excess = {
  field: string;
  value: string | number;
  ceiling: string | number;
  /** Configuration key of the ceiling. */
  setting: string;
};

type InstanceLimits = Pick<Instance, 'needs_egress' | 'environment' | 'plan'>;

/**
 * Returns the first setting of a run or an instance above its ceiling; null: none. A run without a disk limit is allowed, because
 * workers then apply the ceiling.
 */
export function beyondCeiling(run: Bounded, ceilings: Ceilings, instance?: InstanceLimits): Excess | null {
  if (ceilings.max_network === 'none') {
    const { agent_network, eval_network } = run.sandbox;
    const networks = { 'sandbox.agent_network': agent_network, 'sandbox.eval_network': eval_network };
    const network = { value: 'egress', ceiling: 'none', setting: 'max_network' } as const;
    for (const [field, value] of Object.entries(networks))
      if (value === 'egress') return { field, ...network };
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

/** Returns the first setting of an instance above its ceiling, except for the network; null: none. */
export function instanceBeyondCeiling(
  { environment, plan }: InstanceLimits,
  ceilings: Ceilings,
): Excess | null {
  const steps = [...(environment?.setup ?? []), ...(plan?.before ?? []), ...(plan?.after ?? [])];
  const limits = {
    max_cpus: ['environment.cpus', environment?.cpus],
    max_memory_bytes: ['environment.memory_bytes', environment?.memory_bytes],
    max_evaluation_seconds: ['timeout of a step', Math.max(0, ...steps.map(({ timeout }) => timeout))],
  } as const;
  for (const [setting, [field, value]] of Object.entries(limits)) {
    const ceiling = ceilings[setting as keyof typeof limits];
    if (ceiling !== null && value !== undefined && value > ceiling) return { field, value, ceiling, setting };
  }
  return null;
}

/** @param where the process that enforces the ceiling */
export const describeExcess = ({ field, value, ceiling, setting }: Excess, where: string): string =>
  `${field}: ${value} is beyond ${ceiling}, the ceiling of ${where}; ask for less, or have its operator raise ${setting}`;
