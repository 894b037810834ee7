/** Measures rollouts beyond the limit of their policy: the load of Redis while they wait, and the delay until a freed slot is used. */
import { makespan, submit } from '@swefarm/runs';
import { sleep } from '@swefarm/shared';
import { until } from '@swefarm/testkit';
import { secondsOf } from '../durations.ts';
import { PATIENCE } from '../fleet.ts';
import { type Load, loadBetween, secondsBetween, times } from '../load.ts';
import { rounded } from '../statistics.ts';
import { collect, GROUP, instancesOf, onceEach, recordOf, type SimulatedFarm } from './farm.ts';

export type WaitingPart = {
  rollouts: number;
  limit: number;
  /** Time until all rollouts but `limit` wait. */
  settled_seconds: number;
  /** Load per second of the whole farm while the rollouts wait, minus the load of idle nodes. */
  waiting: Load;
  /** Duration of a step of short rollouts under the limit, and its duration if each freed slot were used at once (same order). */
  step_seconds: number;
  ideal_seconds: number;
};

/** The durations of the step's rollouts are divided by this number, so that slots are freed often. */
const COMPRESS = 120;

export async function waitForPolicy(
  simulated: SimulatedFarm,
  { fill: rollouts, watch_seconds, idle }: { fill: number; watch_seconds: number; idle: Load },
): Promise<WaitingPart> {
  const { farm, fleet, look } = simulated;
  const limit = rollouts / 4;
  const start = async (name: string, compress: number | null) => {
    const instances = instancesOf(name, Math.ceil(rollouts / GROUP));
    const record = recordOf(instances, limit);
    if (compress !== null) fleet.send({ order: 'time', run_id: record.run_id, compress });
    return await submit(farm, { record, instances });
  };
  const from = performance.now();
  const { run_id } = await start('waiting', null);
  const settled = async (): Promise<boolean> => {
    const [pool] = (await farm.admissions.list()).filter((one) => one.limit === limit);
    return fleet.running() === limit && pool?.waiting === rollouts - limit;
  };
  await until(settled, PATIENCE);
  const settled_seconds = rounded((performance.now() - from) / 1000, 1);
  const before = await look();
  await sleep(1000 * watch_seconds);
  const after = await look();
  const seconds = secondsBetween(before, after);
  const waiting = loadBetween(before, after, seconds, times(idle, seconds));
  await farm.cancel.cancelRun(run_id);
  await collect(farm, run_id, rollouts);
  const begun = Date.now();
  const step = await start('turnover', COMPRESS);
  const results = await collect(farm, step.run_id, rollouts);
  onceEach(results, rollouts, 0);
  const ideal = makespan(step.rollouts.map(secondsOf), limit) / COMPRESS;
  const step_seconds = rounded((Math.max(...results.map(({ at }) => at)) - begun) / 1000, 1);
  return {
    rollouts,
    limit,
    settled_seconds,
    waiting,
    step_seconds,
    ideal_seconds: rounded(ideal, 1),
  };
}
