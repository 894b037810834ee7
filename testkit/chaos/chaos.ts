/** Runs the chaos test for one seed, from the start of a farm to the verdict. */

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { onAbort } from '@swefarm/shared';
import { keysLeft, redisMemory, sandboxesLeft, tracesLeft } from './aftermath.ts';
import { artifactsApart } from './artifacts.ts';
import { type ChaosFarm, groupSizeFor, startChaosFarm } from './farm.ts';
import { callRun } from './gateway.ts';
import { type Collector, startCollector, submitRun } from './producer.ts';
import { followProgress, type Progress } from './progress.ts';
import { type FaultKind, makeSchedule, type ScheduledFault } from './schedule.ts';
import { actOf, CALLED } from './script.ts';
import { type Overcome, strikeAll } from './strike.ts';
import { quantile, startTimeline } from './timeline.ts';
import { type Call, judgeFarm } from './verdict.ts';

export type ChaosOptions = {
  seed: number;
  /** Number of all rollouts, submitted by the producer or posted to the gateway. */
  rollouts: number;
  workers: number;
  /** Whether to use fewer and shorter faults. */
  short: boolean;
  /** Whether `swefarm redis` leads Redis and fails over. */
  led: boolean;
  /** Folder for the logs of a failed seed. */
  logsDir?: string | undefined;
  /** Time in ms after which the run is aborted. */
  limitMs: number;
  onNote: (line: string) => void;
};

export type ChaosReport = {
  seed: number;
  rollouts: number;
  faults: Record<string, number>;
  results: Record<string, number>;
  /** Number of failed results, by class of the failure. */
  failures: Record<string, number>;
  /** Numbers of rollouts whose last attempt continued turns, continued an interrupted answer, or began anew after a replay that differed. */
  replays: { turns: number; answers: number; differed: number };
  /** Tokens that the policy streamed, divided by the tokens in results. */
  sampled_per_token: number | null;
  recovery_seconds: { p50: number | null; p95: number | null; slowest: string | null };
  redis_bytes: { base: number; end: number };
  seconds: number;
  problems: string[];
};

const CALLED_SHARE = 0.14;
const GROUPS = { long: 8, short: 2 };
const CALLERS = 4;

/** Runs the test. A farm that breaks a promise gives a report with problems; this function does not throw for it. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport & { timeline: string }> {
  const { seed, rollouts, workers, short, led } = options;
  const from = performance.now();
  const timeline = startTimeline(options.onNote);
  const schedule = makeSchedule({ seed, workers, short, led });
  const groups = short ? GROUPS.short : GROUPS.long;
  const groupSize = groupSizeFor(rollouts * (1 - CALLED_SHARE), groups);
  const callCount = Math.max(1, rollouts - groups * groupSize);
  const total = groups * groupSize + callCount;

  await using farm = await startChaosFarm({
    ...{ groups, groupSize, workers, led },
    concurrency: 4,
    policyDelayMs: short ? 500 : 1_200,
  });
  const base = await redisMemory(farm);
  const stop = new AbortController();
  const limit = AbortSignal.timeout(options.limitMs);
  const progress = followProgress(farm.view, stop.signal);
  timeline.note(`the farm is up: ${workers} workers, ${total} rollouts, ${schedule.length} faults`);
  const runId = await submitRun(farm.runFlags, farm.env);
  const collector = startCollector(runId, join(farm.folder, 'out.jsonl'), farm.env);
  const asked = await farm.view.groups.rollouts(runId);
  const context = { farm, progress, collector, note: timeline.note };
  const outcome: Outcome = { calls: [], overcome: [], problems: [] };
  try {
    const calling = callAll(farm, callCount, limit, outcome.calls);
    const { overcome, problems } = await strikeAll(context, schedule, total, limit);
    outcome.overcome = overcome;
    outcome.problems.push(...problems);
    await calling;
    const code = await unlessLate(collector.done(), limit);
    timeline.note(`all results are collected, exit code ${code}`);
  } catch (error) {
    outcome.problems.push(`aborted:  ${error instanceof Error ? error.message : String(error)}`);
  }
  outcome.problems.push(...(await end(farm, progress, stop, outcome, timeline.note)));
  const lines = await collector.lines().catch(() => []);
  const removed = await keysLeft(farm, progress.runIds(), base);
  const struck = new Set<FaultKind>(schedule.map(({ kind }) => kind));
  const problems = [
    ...outcome.problems,
    ...judgeFarm({
      ...{ asked, results: progress.results, lines, calls: outcome.calls, struck },
      leftovers: removed,
    }),
  ];
  if (problems.length > 0 && options.logsDir !== undefined) await writeLogs(farm, collector, options.logsDir);
  collector.kill();
  return {
    ...summary(progress, schedule, outcome.overcome),
    ...sampling(progress, farm.policy.stats().streamed_tokens),
    ...{ seed, rollouts: total, problems },
    redis_bytes: { base, end: await redisMemory(farm) },
    seconds: Math.round((performance.now() - from) / 1000),
    timeline: timeline.render(),
  };
}

type Outcome = { calls: Call[]; overcome: Overcome[]; problems: string[] };

/** Runs several concurrent callers, so that calls are open whenever the gateway is killed. */
async function callAll(farm: ChaosFarm, count: number, limit: AbortSignal, calls: Call[]): Promise<void> {
  const instances = [...CALLED.keys()];
  let next = 0;
  const caller = async (): Promise<void> => {
    while (next < count) {
      const number = next++;
      const row = farm.rows.get(instances[number % instances.length] ?? '') ?? {};
      calls.push(await callRun(farm.gateway.url, row, `call-${number}`, limit));
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
}

/** Stops everything in order. Returns a line for each problem and for everything that is left. */
async function end(
  farm: ChaosFarm,
  progress: Progress,
  stop: AbortController,
  outcome: Outcome,
  note: (what: string) => void,
): Promise<string[]> {
  const left = await sandboxesLeft(farm);
  note('no sandbox is left');
  const codes = await Promise.all([farm.gateway.drain(), ...farm.workers.map((worker) => worker.drain())]);
  const wrong = codes.filter((code) => code !== 0).map((code) => `a gateway or worker ended with ${code}`);
  stop.abort();
  await progress.finish();
  const surprises = farm.workers.flatMap((worker) => worker.surprises);
  const answered = outcome.calls.length;
  note(`all processes have ended; ${progress.committed()} results, ${answered} answered calls`);
  const apart = await artifactsApart(farm, progress.results);
  const traces = [...left, ...(await tracesLeft(farm))].map((what) => `left behind: ${what}`);
  return [...traces, ...wrong, ...surprises, ...apart];
}

function summary(progress: Progress, schedule: readonly ScheduledFault[], overcome: readonly Overcome[]) {
  const faults = tally(schedule.map(({ kind }) => kind));
  const played = progress.results.flatMap((seen) => actOf(seen.instance_id, seen.rollout_index).fault ?? []);
  const slowest = [...overcome].sort((a, b) => b.seconds - a.seconds)[0];
  const seconds = overcome.map((one) => one.seconds);
  const rounded = (value: number | null): number | null =>
    value === null ? null : Math.round(value * 10) / 10;
  return {
    faults: { ...faults, ...tally(played) },
    results: tally(
      progress.results.map(({ outcome, reward }) => (outcome === 'judged' ? `reward ${reward}` : outcome)),
    ),
    failures: tally(progress.results.flatMap(({ failure }) => failure?.class ?? [])),
    recovery_seconds: {
      p50: rounded(quantile(seconds, 0.5)),
      p95: rounded(quantile(seconds, 0.95)),
      slowest: slowest?.kind ?? null,
    },
  };
}

function sampling(
  { results }: Progress,
  streamed: number,
): Pick<ChaosReport, 'replays' | 'sampled_per_token'> {
  const replays = results.flatMap(({ replay }) => replay ?? []);
  const delivered = results.reduce((sum, { tokens }) => sum + tokens.completion, 0);
  return {
    replays: {
      turns: replays.filter(({ turns }) => turns > 0).length,
      answers: replays.filter(({ tokens }) => tokens !== undefined).length,
      differed: replays.filter(({ differed_at: turn }) => turn !== null).length,
    },
    sampled_per_token: delivered === 0 ? null : Math.round((streamed / delivered) * 1000) / 1000,
  };
}

function tally(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of [...names].sort()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

async function unlessLate<T>(promise: Promise<T>, limit: AbortSignal): Promise<T> {
  const late = Promise.withResolvers<never>();
  using _listener = onAbort(limit, () => late.reject(new Error('the time for this seed is over')));
  return await Promise.race([late.promise, promise]);
}

async function writeLogs(farm: ChaosFarm, collector: Collector, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const worker of farm.workers) await writeFile(join(folder, `${worker.name}.log`), worker.log());
  await writeFile(join(folder, 'redis.log'), farm.redis.log());
  await writeFile(join(folder, 'gateway.log'), farm.gateway.log());
  await writeFile(join(folder, 'collector.log'), collector.log());
}
