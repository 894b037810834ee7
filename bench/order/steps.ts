/** Instances of a step and the durations of their rollouts, drawn as in durations.ts; equal seeds draw equal steps. */
import { createNormal, newRunRecord } from '@swefarm/runs';
import type { RunRecord } from '@swefarm/shared';
import { bareInstance } from '@swefarm/testkit';
import { DURATIONS } from '../durations.ts';

/** Share of the variance of durations (durations.ts) that belongs to the instance; the rest differs between its rollouts. */
export const SHARE_OF_INSTANCE = 0.5;

/** Seconds of the rollouts of each instance in two steps. */
export function drawSteps(seed: number, { instances, group }: { instances: number; group: number }) {
  const draw = createNormal(seed);
  const { median_seconds, sigma, longest_seconds } = DURATIONS;
  const own = sigma * Math.sqrt(SHARE_OF_INSTANCE);
  const within = sigma * Math.sqrt(1 - SHARE_OF_INSTANCE);
  return Array.from({ length: instances }, () => {
    const bell = own * draw();
    const step = () =>
      Array.from({ length: group }, () =>
        Math.min(longest_seconds, median_seconds * Math.exp(bell + within * draw())),
      );
    return { first: step(), second: step() };
  });
}

export const named = (at: number) => bareInstance({ instance_id: `i-${at}` });

export const recordOf = (count: number, group: number, flags: Record<string, unknown>): RunRecord => {
  const dataset = {
    path: 'bench',
    sha256: '',
    instances: Array.from({ length: count }, (_, at) => named(at)),
  };
  return newRunRecord({ dataset, flags: { agent: 'mini', groupSize: group, ...flags } }, false);
};
