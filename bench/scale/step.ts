/** A whole training step on a simulated farm, compared with the ideal: no queue, no pull and a slot for each rollout. */
import { submit } from '@swefarm/runs';
import { secondsOf } from '../durations.ts';
import { percentile, rounded } from '../statistics.ts';
import { collect, GROUP, instancesOf, onceEach, recordOf, type SimulatedFarm } from './farm.ts';

export type Times = { p50: number; p95: number; p99: number; last: number };

export type Step = {
  rollouts: number;
  images: number;
  pulls: number;
  /** From the submit to the commit of the given percentile of rollouts. */
  seconds: Times;
  /** The same durations with no queue, no pull and a slot for each rollout at once. */
  ideal_seconds: Times;
};

/** Runs a training step on nodes that have none of its images. */
export async function takeStep(
  { farm, fleet }: SimulatedFarm,
  size: { step_instances: number; compress: number },
): Promise<Step> {
  const instances = instancesOf('step', size.step_instances);
  const record = recordOf(instances);
  const rollouts = instances.length * GROUP;
  fleet.send({ order: 'time', run_id: record.run_id, compress: size.compress });
  const from = Date.now();
  const { rollouts: ids } = await submit(farm, { record, instances });
  const results = await collect(farm, record.run_id, rollouts);
  onceEach(results, rollouts, 0);
  return {
    rollouts,
    images: instances.length,
    pulls: fleet.pulled.length,
    seconds: timesOf(results.map(({ at }) => (at - from) / 1000)),
    ideal_seconds: timesOf(ids.map((id) => secondsOf(id) / size.compress)),
  };
}

const timesOf = (seconds: readonly number[]): Times => {
  const at = (percent: number): number => rounded(percentile(seconds, percent), 1);
  return { p50: at(50), p95: at(95), p99: at(99), last: at(100) };
};
