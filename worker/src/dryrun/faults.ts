/** Selects the faults of a dry run's script for each rollout. */
import { applies, type DryRunScript, type RolloutFault, secondsOf } from '@swefarm/shared';
import type { Name } from './stored.ts';

export type Faults = Pick<RolloutFault, 'fail' | 'attempts' | 'reward' | 'ids' | 'versions'> & {
  cancels: 'rollout' | 'group' | null;
  delaySeconds: number;
  /** Descriptions of the faults for the result. */
  names: string[];
};

/** Returns the faults of a rollout. `storedSeconds`: time of agent and evaluation of the stored rollout. */
export type FaultsOf = (name: Name, storedSeconds: number) => Faults;

/** Returns a function that selects faults. It numbers rollouts and groups in the order of their first calls. */
export function createFaults({ seed, delay, rollouts, groups }: DryRunScript): FaultsOf {
  const rolloutNumbers = new Map<string, number>();
  const groupNumbers = new Map<string, number>();
  return (name, storedSeconds) => {
    const group = `${seed}/${name.instance}/${name.visit}`;
    const ofGroup = groups.filter((fault, at) =>
      applies(fault, numberOf(groupNumbers, group), `${group}/group/${at}`),
    );
    const own = rollouts.filter((fault, at) =>
      applies(fault, numberOf(rolloutNumbers, name.text), `${name.text}/fault/${at}`),
    );
    const short = ofGroup.find((one) => one.short !== undefined && name.index >= one.short);
    const isCancelled = ofGroup.some((one) => one.cancel);
    const failing: RolloutFault[] = short ? [{ fail: 'sandbox_lost' }] : [];
    // If several faults of one kind match, the first one in the script applies.
    const chosen: RolloutFault = Object.assign({}, ...[...failing, ...own].toReversed());
    const { fail, attempts, reward, cancel, ids, versions } = chosen;
    return {
      ...{ fail, attempts, reward, ids, versions },
      cancels: isCancelled ? 'group' : cancel ? 'rollout' : null,
      delaySeconds: secondsOf(chosen.delay ?? delay, `${name.text}/delay`, storedSeconds),
      names: [
        ...(short ? ['group: short'] : []),
        ...(isCancelled ? ['group: cancel'] : []),
        ...own.map(nameOf),
      ],
    };
  };
}

/** Returns the number of a key, from 1, in the order of first use. */
function numberOf(numbers: Map<string, number>, key: string): number {
  const known = numbers.get(key) ?? numbers.size + 1;
  numbers.set(key, known);
  return known;
}

const nameOf = ({ fail, versions, ids, reward, delay }: RolloutFault): string => {
  if (fail) return `fail: ${fail}`;
  if (versions) return `versions: ${versions.join(', ')}`;
  if (ids) return `ids: ${ids}`;
  if (reward) return `reward: ${reward}`;
  return delay === undefined ? 'cancel' : 'delay';
};
