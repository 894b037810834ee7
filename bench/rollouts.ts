/**
 * Measures complete rollouts per minute, from submit to commit, with a running worker and a model that answers at once, alternately
 * with the engine's floor for the same containers and commands.
 */
import { planEvaluation } from '@swefarm/grading';
import type { Result, RuntimeName, Seconds } from '@swefarm/shared';
import { conversation } from '@swefarm/testkit';
import { COMMANDS } from './commands.ts';
import {
  type BenchEnvironment,
  type BenchWorker,
  openEnvironment,
  type Policy,
  runSolved,
  startPolicy,
  startWarm,
} from './farm.ts';
import { runFloor } from './floor.ts';
import { type Skipped, usableRuntimes } from './sandbox.ts';
import { median, rounded } from './statistics.ts';
import type { Subject } from './subject.ts';

type Who = 'floor' | 'docker' | 'rootfs';

export type RolloutsCell = {
  parallel: number;
  graded: boolean;
  rollouts: number;
  /** Rollouts a minute: one sample a round. */
  per_minute: Partial<Record<Who, { p50: number; samples: number[] }>>;
  /** Median over the rounds of (ours / Docker's floor). */
  of_docker_floor: Partial<Record<RuntimeName, number>>;
  /** Median seconds of each stage of our rollouts. */
  stages: Partial<Record<RuntimeName, Partial<Seconds>>>;
};

export type RolloutsPart = { reps: number; cells: RolloutsCell[]; skipped: Skipped[] };

export type RolloutsSize = { parallel: number; rollouts: number };

/** A rollout that runs the twenty commands and submits. */
export const SCRIPT = conversation([
  ...COMMANDS.map((command) => ({ thought: 'I look.', command })),
  { submit: true },
]);

export async function measureRollouts(
  subject: Subject,
  sizes: readonly RolloutsSize[],
  reps: number,
): Promise<RolloutsPart> {
  await using environment = await openEnvironment();
  await using policy = await startPolicy(environment, 'rollouts', SCRIPT, ['--tokens', 'off']);
  const { usable, skipped } = await usableRuntimes();
  const cells: RolloutsCell[] = [];
  for (const size of sizes)
    cells.push(...(await measureSize({ subject, environment, policy, usable, size, reps })));
  return { reps, cells, skipped };
}

type Setting = {
  subject: Subject;
  environment: BenchEnvironment;
  policy: Policy;
  usable: readonly RuntimeName[];
  size: RolloutsSize;
  reps: number;
};

async function measureSize(setting: Setting): Promise<RolloutsCell[]> {
  const { subject, environment, policy, usable, size, reps } = setting;
  await using stack = new AsyncDisposableStack();
  const warmed = { instance: subject.instance, policy };
  const workers = await startWarm(environment, usable, size.parallel, warmed, stack);
  const cells = [false, true].map((graded) => newCell(size, graded));
  const order: Who[] = ['floor', ...(usable as Who[])];
  for (let rep = 0; rep < reps; rep++) {
    for (const cell of cells) {
      order.push(order.shift() as Who);
      for (const who of order) await measureOne(setting, cell, who, workers);
    }
  }
  return cells.map(({ cell, stages }) => finished(cell, stages));
}

type OpenCell = { cell: RolloutsCell; stages: Map<RuntimeName, Result[]> };

const newCell = ({ parallel, rollouts }: RolloutsSize, graded: boolean): OpenCell => ({
  cell: { parallel, graded, rollouts, per_minute: {}, of_docker_floor: {}, stages: {} },
  stages: new Map(),
});

async function measureOne(
  { subject, policy, size }: Setting,
  { cell, stages }: OpenCell,
  who: Who,
  workers: ReadonlyMap<RuntimeName, BenchWorker>,
): Promise<void> {
  let seconds: number;
  const worker = who === 'floor' ? undefined : workers.get(who);
  if (worker && who !== 'floor') {
    const batch = await runSolved(worker, subject.instance, size.rollouts, { policy, graded: cell.graded });
    seconds = batch.seconds;
    stages.set(who, [...(stages.get(who) ?? []), ...batch.results]);
  } else {
    const script = cell.graded ? planEvaluation(subject.instance).script : null;
    seconds = await runFloor(subject.image, size.rollouts, size.parallel, script);
  }
  cell.per_minute[who] ??= { p50: 0, samples: [] };
  const rate = rounded((60 * size.rollouts) / seconds, 1);
  cell.per_minute[who].samples.push(rate);
  // This takes long enough that the user wants to see progress.
  console.error(
    `  ${size.parallel} at once, ${cell.graded ? 'graded' : 'not graded'}, ${who}: ${rate} a minute`,
  );
}

function finished(cell: RolloutsCell, stages: OpenCell['stages']): RolloutsCell {
  for (const one of Object.values(cell.per_minute)) one.p50 = median(one.samples);
  const floor = cell.per_minute.floor?.samples ?? [];
  for (const [name, results] of stages) {
    const ratios =
      cell.per_minute[name as Who]?.samples.map((rate, at) => rate / (floor[at] ?? Number.NaN)) ?? [];
    cell.of_docker_floor[name] = rounded(median(ratios), 2);
    const keys = Object.keys(results[0]?.seconds ?? {}) as (keyof Seconds)[];
    cell.stages[name] = Object.fromEntries(
      keys.map((key) => [key, median(results.map(({ seconds }) => seconds[key] ?? 0))]),
    );
  }
  return cell;
}
