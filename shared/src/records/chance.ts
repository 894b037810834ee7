/** Random decisions of a dry run. They depend only on the seed and the name of the decision, so a script repeats the same faults. */
import type { Delay, When } from './dryrun.ts';
import { uniformOf } from './uniform.ts';

/** Returns whether a fault applies to event number `count` (from 1). `name` determines the outcome of `chance`. */
export const applies = ({ chance, nth, every }: When, count: number, name: string): boolean =>
  (chance === undefined || uniformOf(name) < chance) &&
  (nth === undefined || nth.includes(count)) &&
  (every === undefined || count % every === 0);

/** Returns the seconds of a delay. `storedSeconds`: duration of the stored rollout. */
export function secondsOf(delay: Delay, name: string, storedSeconds = 0): number {
  if (typeof delay === 'number') return delay;
  if ('stored' in delay) return delay.stored * storedSeconds;
  const drawn = uniformOf(name);
  if ('from' in delay) return delay.from + drawn * (delay.to - delay.from);
  // Box-Muller transform. `1 - drawn` is above 0, so its logarithm is finite.
  const normal = Math.sqrt(-2 * Math.log(1 - drawn)) * Math.cos(2 * Math.PI * uniformOf(`${name}/angle`));
  return delay.median * Math.exp(delay.sigma * normal);
}
