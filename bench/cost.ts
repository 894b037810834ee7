/** Measures the CPU of a rollout by part: worker's main thread, its other threads, engine, sandboxes and Redis; and the floor. */
import { planEvaluation } from '@swefarm/grading';
import { type RuntimeName, sleep } from '@swefarm/shared';
import { type EngineAccount, openEngineAccount, processTimes } from './account.ts';
import { type PacedCost, pacedCost, type TurnCost, turnCosts } from './costturns.ts';
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
import { skippedLines, table } from './print.ts';
import { SCRIPT } from './rollouts.ts';
import { type Skipped, usableRuntimes } from './sandbox.ts';
import { median, rounded, sum } from './statistics.ts';
import type { Subject } from './subject.ts';

/** Milliseconds of CPU of one rollout; null: not measurable on this machine. */
export type Parts = {
  /** The worker's main thread; for the floor, the benchmark's own process. */
  main: number;
  threads: number;
  engine: number | null;
  /** The commands, the tests and the processes of their sandbox. */
  sandbox: number | null;
  redis: number;
};

export type CostCell = {
  who: 'floor' | RuntimeName;
  graded: boolean;
  /** Medians of the rounds, and each round. */
  ms: Parts;
  samples: Parts[];
};

export type CostPart = {
  rollouts: number;
  parallel: number;
  cells: CostCell[];
  turns: TurnCost;
  paced: PacedCost;
  skipped: Skipped[];
};

export type CostSize = {
  reps: number;
  rollouts: number;
  parallel: number;
  /** Turns of the shorter and the longer script, and rollouts of each. */
  turns: readonly [number, number];
  each: number;
  paced: { rollouts: number; turns: number; seconds: number };
};

export const COST: CostSize = {
  ...{ reps: 3, rollouts: 32, parallel: 16, turns: [5, 60], each: 48 },
  paced: { rollouts: 64, turns: 60, seconds: 2 },
};
export const QUICK_COST: CostSize = {
  ...{ reps: 1, rollouts: 2, parallel: 2, turns: [2, 12], each: 2 },
  paced: { rollouts: 2, turns: 3, seconds: 0.5 },
};

/** The worker removes containers after the commit; this CPU is part of the rollout. */
const REMOVAL_MS = 1000;

type Setting = {
  subject: Subject;
  environment: BenchEnvironment;
  policy: Policy;
  size: CostSize;
  engine: EngineAccount | null;
};

export async function measureCost(subject: Subject, size: CostSize): Promise<CostPart> {
  await using environment = await openEnvironment();
  await using policy = await startPolicy(environment, 'cost', SCRIPT, ['--tokens', 'off']);
  const { usable, skipped } = await usableRuntimes();
  const opened = openEngineAccount();
  using engine = typeof opened === 'string' ? null : opened;
  if (typeof opened === 'string') skipped.push({ what: 'the engine', why: opened });
  const setting = { subject, environment, policy, size, engine };
  const cells = await measureCells(setting, usable);
  const runtime = usable.includes('rootfs') ? 'rootfs' : 'docker';
  const turns = await turnCosts(environment, subject, runtime, size);
  const paced = await pacedCost(environment, subject, runtime, size);
  return { rollouts: size.rollouts, parallel: size.parallel, cells, turns, paced, skipped };
}

async function measureCells(setting: Setting, usable: readonly RuntimeName[]): Promise<CostCell[]> {
  const { subject, environment, policy, size } = setting;
  await using stack = new AsyncDisposableStack();
  const warmed = { instance: subject.instance, policy };
  const workers = await startWarm(environment, usable, size.parallel, warmed, stack);
  const cells: CostCell[] = [];
  for (const graded of [false, true])
    for (const who of ['floor', ...usable] as const) {
      const samples: Parts[] = [];
      for (let rep = 0; rep < size.reps; rep++) {
        const worker = who === 'floor' ? null : (workers.get(who) ?? null);
        const parts = await measureOne(setting, worker, who, graded);
        samples.push(parts);
        console.error(`  ${who}, ${graded ? 'graded' : 'not graded'}: ${totalOf(parts)} ms of CPU a rollout`);
      }
      cells.push({ who, graded, ms: medianParts(samples), samples });
    }
  return cells;
}

async function measureOne(
  { subject, environment, policy, size, engine }: Setting,
  worker: BenchWorker | null,
  who: CostCell['who'],
  graded: boolean,
): Promise<Parts> {
  await sleep(REMOVAL_MS);
  const pid = worker?.pid ?? process.pid;
  const look = () => ({
    own: processTimes(pid),
    redis: processTimes(environment.redis.pid()),
    engine: engine?.read() ?? null,
  });
  const before = look();
  if (worker) await runSolved(worker, subject.instance, size.rollouts, { policy, graded });
  else {
    const script = graded ? planEvaluation(subject.instance).script : null;
    await runFloor(subject.image, size.rollouts, size.parallel, script);
  }
  await sleep(REMOVAL_MS);
  const after = look();
  const each = (seconds: number): number => rounded((1000 * seconds) / size.rollouts, 1);
  const inEngine = (part: 'daemons' | 'containers'): number | null =>
    after.engine && before.engine ? each(after.engine[part] - before.engine[part]) : null;
  return {
    main: each(after.own.main - before.own.main),
    threads: each(after.own.threads - before.own.threads),
    engine: who === 'rootfs' ? 0 : inEngine('daemons'),
    sandbox: who === 'rootfs' ? each(after.own.children - before.own.children) : inEngine('containers'),
    redis: each(after.redis.main + after.redis.threads - before.redis.main - before.redis.threads),
  };
}

const KEYS = ['main', 'threads', 'engine', 'sandbox', 'redis'] as const;

function medianParts(samples: readonly Parts[]): Parts {
  const of = (key: keyof Parts): number | null => {
    const known = samples.flatMap((one) => (one[key] === null ? [] : [one[key]]));
    return known.length > 0 ? median(known) : null;
  };
  return Object.fromEntries(KEYS.map((key) => [key, of(key)])) as Parts;
}

const totalOf = (parts: Parts): number => rounded(sum(KEYS.map((key) => parts[key] ?? 0)), 1);

export function printCost({ cells, rollouts, parallel, turns, paced, skipped }: CostPart): string {
  const head = ['graded', 'who', 'all', 'main thread', 'other threads', 'engine', 'sandbox', 'redis'];
  const rows = cells.map(({ who, graded, ms }) => [
    graded ? 'yes' : 'no',
    who,
    totalOf(ms),
    ...KEYS.map((key) => ms[key] ?? '-'),
  ]);
  return [
    `Milliseconds of CPU of one rollout, by part (${rollouts}, ${parallel} at once)`,
    table([head, ...rows]),
    '',
    `The worker's main thread (${turns.runtime}): ${turns.main_ms_per_turn} ms a turn, ${turns.main_ms_per_rollout} ms a rollout beside its turns`,
    `All of the worker's threads: ${turns.all_ms_per_turn} ms a turn, ${turns.all_ms_per_rollout} ms a rollout beside its turns`,
    `A rollout of ${paced.turns} turns of ${paced.seconds} s, ${paced.rollouts} at once: ${paced.worker_ms} ms in the worker (main thread ${paced.main_ms}), ${paced.sandbox_ms} ms in its sandbox, ${paced.redis_ms} ms in Redis`,
    ...skippedLines(skipped),
  ].join('\n');
}
