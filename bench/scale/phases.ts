/** The phases of a simulated farm, in order: rollouts fill it, report their turns, and a tenth of its nodes is killed. */
import { submit } from '@swefarm/runs';
import { sleep } from '@swefarm/shared';
import { until } from '@swefarm/testkit';
import { type Fleet, PATIENCE } from '../fleet.ts';
import type { Books } from '../load.ts';
import { percentile, rounded } from '../statistics.ts';
import { GROUP, instancesOf, recordOf, type SimulatedFarm } from './farm.ts';

export type Filled = {
  submit_seconds: number;
  /** Time from the start of the submit until 50 %, 99 % and all of the rollouts ran. */
  half_seconds: number;
  most_seconds: number;
  all_seconds: number;
  images: number;
  pulls: number;
};

export type Recovery = {
  nodes: number;
  rollouts: number;
  first_seconds: number;
  half_seconds: number;
  all_seconds: number;
};

/** Each rollout reports this many turns; only the last is measured, because the first one also carries the prompt. */
export const REPORTED_TURNS = 2;
/** All rollouts report at once; when nothing arrives for this long, all have reported. */
const QUIET_MS = 500;

export async function fillUp({ farm, fleet, look }: SimulatedFarm, rollouts: number) {
  const instances = instancesOf('fill', Math.ceil(rollouts / GROUP));
  const run = recordOf(instances);
  const pulledBefore = fleet.pulled.length;
  const empty = await look();
  const from = performance.now();
  const since = (): number => rounded((performance.now() - from) / 1000, 1);
  const reached = async (part: number): Promise<number> => {
    await until(() => fleet.running() >= part * rollouts, PATIENCE);
    return since();
  };
  const [[submit_seconds, ids], half_seconds, most_seconds, all_seconds] = await Promise.all([
    submit(farm, { record: run, instances }).then((done) => [since(), done.rollouts] as const),
    reached(0.5),
    reached(0.99),
    reached(1),
  ] as const);
  const full = await look();
  const filled: Filled = {
    ...{ submit_seconds, half_seconds, most_seconds, all_seconds },
    ...{ images: instances.length, pulls: fleet.pulled.length - pulledBefore },
  };
  return { run, ids, filled, empty, full };
}

export async function reportTurns({
  fleet,
  look,
}: SimulatedFarm): Promise<[first: Books, latest: Books, count: number]> {
  const once = async (): Promise<[Books, Books, number]> => {
    const first = await look();
    fleet.send({ order: 'turn' });
    let [before, latest] = [first, await look()];
    // Waits until no more turns arrive; a rollout that is just changing its node reports none, so they cannot be counted.
    while (latest.xadds > before.xadds || latest.xadds === first.xadds) {
      await sleep(QUIET_MS);
      [before, latest] = [latest, await look()];
    }
    return [first, latest, latest.xadds - first.xadds];
  };
  let last = await once();
  for (let turn = 1; turn < REPORTED_TURNS; turn++) last = await once();
  return last;
}

export async function loseNodes(fleet: Fleet, nodes: number): Promise<Recovery | null> {
  const lost = Math.floor(nodes / 10);
  if (lost === 0) return null;
  const rollouts = fleet.lose();
  const seconds = (await fleet.recovered(rollouts)).map((ms) => rounded(ms / 1000, 1));
  const at = (percent: number): number => percentile(seconds, percent);
  return {
    ...{ nodes: lost, rollouts: rollouts.length },
    ...{ first_seconds: at(0), half_seconds: at(50), all_seconds: at(100) },
  };
}
