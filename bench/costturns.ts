/** Measures the worker's CPU of one turn and of a rollout without its turns, and the CPU of rollouts with slow answers. */
import { type RuntimeName, sleep } from '@swefarm/shared';
import { conversation, type ScriptInput } from '@swefarm/testkit';
import { type ProcessTimes, processTimes } from './account.ts';
import type { CostSize } from './cost.ts';
import { type BenchEnvironment, runBatch, startPolicy, startWorker } from './farm.ts';
import { rounded } from './statistics.ts';
import type { Subject } from './subject.ts';

/** Milliseconds of the worker's CPU. Two scripts of different length give the slope (a turn) and the intercept (the rest). */
export type TurnCost = {
  runtime: RuntimeName;
  main_ms_per_turn: number;
  main_ms_per_rollout: number;
  all_ms_per_turn: number;
  all_ms_per_rollout: number;
  samples: { turns: number; main_ms: number; all_ms: number }[];
};

/** Milliseconds of CPU of one rollout whose answers are streamed over some seconds. Its commands do nothing. */
export type PacedCost = {
  rollouts: number;
  turns: number;
  seconds: number;
  worker_ms: number;
  main_ms: number;
  sandbox_ms: number;
  redis_ms: number;
};

const FLAGS = { activate: ':', eval: false };
const TOKENLESS = ['--tokens', 'off'];
/** A long answer, which a stream sends in about thirty pieces. */
const THOUGHT = 'I look at what is there and think about it. '.repeat(25);

const scriptOf = (turns: number, more: Partial<ScriptInput> = {}, thought = 'I look.'): ScriptInput => ({
  ...conversation([
    ...Array.from({ length: turns - 1 }, (_, at) => ({ thought, command: `: ${at}` })),
    { submit: true },
  ]),
  ...more,
});

export async function turnCosts(
  environment: BenchEnvironment,
  { instance }: Subject,
  runtime: RuntimeName,
  { turns, each, parallel }: CostSize,
): Promise<TurnCost> {
  await using worker = await startWorker(environment, runtime, parallel);
  const samples: TurnCost['samples'] = [];
  // Each script runs twice, because V8 compiles hot code during the first run. Only the second run counts.
  for (const count of [...turns, ...turns]) {
    await using policy = await startPolicy(environment, `turns-${count}`, scriptOf(count), TOKENLESS);
    const before = processTimes(worker.pid);
    await runBatch(worker, instance, each, { ...FLAGS, policyUrl: [policy.url] });
    const spent = difference(processTimes(worker.pid), before);
    samples.push({
      turns: count,
      main_ms: (1000 * spent.main) / each,
      all_ms: (1000 * (spent.main + spent.threads)) / each,
    });
  }
  const [few, many] = samples.slice(-2);
  if (!few || !many) throw new Error('two scripts are measured');
  const main = lineThrough([few.turns, few.main_ms], [many.turns, many.main_ms]);
  const all = lineThrough([few.turns, few.all_ms], [many.turns, many.all_ms]);
  return {
    runtime,
    main_ms_per_turn: main.slope,
    main_ms_per_rollout: main.start,
    all_ms_per_turn: all.slope,
    all_ms_per_rollout: all.start,
    samples,
  };
}

type Point = readonly [x: number, y: number];

function lineThrough([x0, y0]: Point, [x1, y1]: Point): { slope: number; start: number } {
  const slope = (y1 - y0) / (x1 - x0);
  return { slope: rounded(slope, 2), start: rounded(y0 - slope * x0, 1) };
}

export async function pacedCost(
  environment: BenchEnvironment,
  { instance }: Subject,
  runtime: RuntimeName,
  { paced }: CostSize,
): Promise<PacedCost> {
  const { rollouts, turns, seconds } = paced;
  const slow = { faults: [{ kind: 'slow_body' as const, ms: 1000 * seconds }] };
  const script = scriptOf(turns, slow, THOUGHT);
  await using policy = await startPolicy(environment, 'paced', script, TOKENLESS);
  await using worker = await startWorker(environment, runtime, rollouts);
  const redis = environment.redis.pid();
  // Warm-up: prepares the image, and lets V8 compile hot code.
  const flags = { ...FLAGS, policyUrl: [policy.url] };
  await using quick = await startPolicy(environment, 'quick', scriptOf(turns, {}, THOUGHT), TOKENLESS);
  await runBatch(worker, instance, Math.min(rollouts, 16), { ...flags, policyUrl: [quick.url] });
  await sleep(1500);
  const before = [processTimes(worker.pid), processTimes(redis)] as const;
  await runBatch(worker, instance, rollouts, flags);
  await sleep(1500);
  const own = difference(processTimes(worker.pid), before[0]);
  const stored = difference(processTimes(redis), before[1]);
  const each = (value: number): number => rounded((1000 * value) / rollouts, 1);
  return {
    ...paced,
    worker_ms: each(own.main + own.threads),
    main_ms: each(own.main),
    sandbox_ms: each(own.children),
    redis_ms: each(stored.main + stored.threads),
  };
}

const difference = (after: ProcessTimes, before: ProcessTimes): ProcessTimes => ({
  main: after.main - before.main,
  threads: after.threads - before.threads,
  children: after.children - before.children,
});
