/** Measures the resident memory of a worker with many long rollouts, for each rollout over a fixed base, and its event loop delay. */
import { readFile } from 'node:fs/promises';
import { type Result, type RuntimeName, sleep, sleepAtMost } from '@swefarm/shared';
import { generateScript } from '@swefarm/testkit';
import { processTimes } from './account.ts';
import { type BenchWorker, openEnvironment, runBatch, startPolicy, startWorker } from './farm.ts';
import { cheapestRuntime } from './sandbox.ts';
import { rounded } from './statistics.ts';
import type { Subject } from './subject.ts';

const MIB = 1024 ** 2;
const SAMPLE_MS = 500;
/** The base memory of a worker, which is not attributed to rollouts. */
const FIXED_MIB = 150;

export type MemorySize = { rollouts: number; turns: number; tokens: number; delayMs: number };

export type MemoryPart = MemorySize & {
  runtime: RuntimeName;
  /** Tokens of the last prompt, as the endpoint counted them. */
  last_prompt_tokens: number;
  rss_mib: { idle: number; peak: number; after: number };
  /** (peak - 150 MiB) / rollouts. */
  mib_per_rollout: number;
  /** p99 of the event loop's delay in windows of 5 s, by the worker's own gauge: the worst and the median window. */
  loop_lag_p99_ms: { worst: number; median: number };
  /** Share of the samples in which at least nine of ten rollouts were in flight. */
  in_flight_share: number;
  run_seconds: number;
  /** CPU seconds of the worker during the run, which include the cost of freeing memory early. */
  cpu_seconds: number;
  samples: Sample[];
};

type Sample = {
  second: number;
  rss_mib: number;
  /** V8's heap, and buffers outside of the heap. */
  heap_mib: number;
  external_mib: number;
  active: number;
  loop_lag_ms: number;
};

export async function measureMemory(subject: Subject, size: MemorySize): Promise<MemoryPart> {
  const { rollouts, turns, tokens, delayMs } = size;
  const runtime = await cheapestRuntime();
  await using environment = await openEnvironment();
  const script = generateScript({ turns, targetTokens: tokens, variants: 4 });
  await using policy = await startPolicy(environment, 'memory', script, ['--delay-ms', String(delayMs)]);
  const flags = { policyUrl: [policy.url], activate: ':', eval: false, requireTokens: true };
  await using worker = await startWorker(environment, runtime, rollouts);
  await sleep(3000);
  const idle = await residentMib(worker.pid);
  const samples: Sample[] = [];
  const stop = new AbortController();
  const sampling = sample(worker, samples, stop.signal);
  const before = processTimes(worker.pid);
  const batch = await runBatch(worker, subject.instance, rollouts, flags);
  const spent = processTimes(worker.pid);
  stop.abort();
  await sampling;
  const wrong = batch.results.find((result) => result.turns !== turns);
  if (wrong) throw new Error(`${wrong.rollout_id} took ${wrong.turns} turns, not ${turns}`);
  const peak = Math.max(...samples.map(({ rss_mib }) => rss_mib));
  const lags = samples.map(({ loop_lag_ms }) => loop_lag_ms).sort((a, b) => a - b);
  const full = samples.filter(({ active }) => active >= 0.9 * rollouts).length;
  return {
    ...size,
    runtime,
    last_prompt_tokens: await lastPromptTokens(worker, batch.results[0]),
    rss_mib: { idle, peak, after: await residentMib(worker.pid) },
    mib_per_rollout: rounded((peak - FIXED_MIB) / rollouts, 2),
    loop_lag_p99_ms: { worst: lags.at(-1) ?? 0, median: lags[Math.floor(lags.length / 2)] ?? 0 },
    in_flight_share: rounded(full / samples.length, 2),
    run_seconds: rounded(batch.seconds, 1),
    cpu_seconds: rounded(spent.main + spent.threads - before.main - before.threads, 1),
    samples,
  };
}

async function sample(worker: BenchWorker, into: Sample[], signal: AbortSignal): Promise<void> {
  const from = performance.now();
  while (!signal.aborted) {
    const metrics = await (await fetch(worker.metricsUrl)).text();
    into.push({
      second: rounded((performance.now() - from) / 1000, 1),
      rss_mib: await residentMib(worker.pid),
      heap_mib: rounded(gauge(metrics, 'nodejs_heap_size_total_bytes') / MIB, 1),
      external_mib: rounded(gauge(metrics, 'nodejs_external_memory_bytes') / MIB, 1),
      active: gauge(metrics, 'swefarm_worker_active_rollouts'),
      loop_lag_ms: rounded(1000 * gauge(metrics, 'swefarm_event_loop_lag_seconds'), 1),
    });
    await sleepAtMost(SAMPLE_MS, signal);
  }
}

function gauge(metrics: string, name: string): number {
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics)?.[1] ?? Number.NaN);
}

async function residentMib(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const kib = Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]);
  return rounded((kib * 1024) / MIB, 1);
}

async function lastPromptTokens(worker: BenchWorker, result: Result | undefined): Promise<number> {
  const content = await worker.farm.artifacts.read(result?.artifact ?? null);
  return content?.trajectory?.turns.at(-1)?.usage?.prompt_tokens ?? Number.NaN;
}
