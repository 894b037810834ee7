/** What metrics cost: their share of the CPU a worker spends on a rollout, and the time to render many series. */
import { family, OUTCOME_METRICS, type Point, ROLLOUT_BUCKETS, renderFamilies } from '@swefarm/shared';
import { generateScript } from '@swefarm/testkit';
import { createWorkerMetrics } from '@swefarm/worker';
import { openEnvironment, runBatch, startPolicy, startWorker } from './farm.ts';
import { cheapestRuntime, gauge } from './memory.ts';
import { table } from './print.ts';
import { median, rounded } from './statistics.ts';
import type { Subject } from './subject.ts';

const TURNS = 60;
const STAGES = ['queued', 'image', 'sandbox', 'agent', 'patch', 'evaluation', 'evaluation_start', 'tests'];
const SERIES = 5_000;

export type MetricsSize = { rollouts: number; repeats: number };

export type MetricsPart = {
  turns: number;
  /** CPU of all metric updates of one rollout, measured alone. */
  metrics_ms_per_rollout: number;
  /** Total CPU of the worker per rollout, over a batch on the cheapest runtime of this machine. */
  worker_ms_per_rollout: number;
  share_percent: number;
  series: number;
  /** Median milliseconds to render that many series: by prom-client (worker), and from sums (gateway). */
  scrape_ms: { worker: number; gateway: number };
};

export async function measureMetrics(
  subject: Subject,
  { rollouts, repeats }: MetricsSize,
): Promise<MetricsPart> {
  const alone = countingMs(repeats);
  const whole = await workerMs(subject, rollouts);
  return {
    turns: TURNS,
    metrics_ms_per_rollout: rounded(alone, 3),
    worker_ms_per_rollout: rounded(whole, 1),
    share_percent: rounded((100 * alone) / whole, 3),
    series: SERIES,
    scrape_ms: { worker: await workerScrapeMs(), gateway: gatewayScrapeMs() },
  };
}

/** Repeats all metric updates of a rollout of 60 turns many times, in a process that does nothing else. */
function countingMs(repeats: number): number {
  const metrics = createWorkerMetrics();
  const from = process.cpuUsage();
  for (let rollout = 0; rollout < repeats; rollout++) {
    for (const stage of STAGES) metrics.stageSeconds.observe({ stage }, rollout % 60);
    metrics.imagesReady.inc({ source: 'cached' });
    for (let turn = 0; turn < TURNS; turn++) {
      metrics.turns.inc();
      metrics.modelSeconds.observe(turn / 10);
      metrics.tokens.inc({ side: 'prompt' }, 9000);
      metrics.tokens.inc({ side: 'completion' }, 200);
      metrics.commandSeconds.observe(turn / 100);
    }
    metrics.attempts.inc({ class: 'done' });
  }
  const { user, system } = process.cpuUsage(from);
  return (user + system) / 1000 / repeats;
}

async function workerMs(subject: Subject, rollouts: number): Promise<number> {
  const runtime = await cheapestRuntime();
  await using environment = await openEnvironment();
  const script = generateScript({ turns: TURNS, targetTokens: 8_000, variants: 1 });
  await using policy = await startPolicy(environment, 'metrics', script, []);
  await using worker = await startWorker(environment, runtime, rollouts);
  const cpu = async (): Promise<number> =>
    gauge(await (await fetch(worker.metricsUrl)).text(), 'process_cpu_seconds_total');
  const before = await cpu();
  await runBatch(worker, subject.instance, rollouts, { policyUrl: [policy.url], activate: ':', eval: false });
  return (1000 * ((await cpu()) - before)) / rollouts;
}

async function workerScrapeMs(): Promise<number> {
  const metrics = createWorkerMetrics();
  const perStage = ROLLOUT_BUCKETS.length + 5;
  for (let n = 0; n < SERIES / perStage; n++) metrics.stageSeconds.observe({ stage: `s${n}` }, n);
  const times: number[] = [];
  for (let round = 0; round < 21; round++) {
    const from = performance.now();
    await metrics.registry.metrics();
    times.push(performance.now() - from);
  }
  return rounded(median(times), 1);
}

function gatewayScrapeMs(): number {
  const points: Point<'kind' | 'stage' | 'class'>[] = Array.from({ length: SERIES }, (_, n) => ({
    labels: { kind: 'training', stage: 'worker', class: `c${n}` },
    value: n,
  }));
  const times: number[] = [];
  for (let round = 0; round < 21; round++) {
    const from = performance.now();
    renderFamilies([family(OUTCOME_METRICS.failed, points)]);
    times.push(performance.now() - from);
  }
  return rounded(median(times), 1);
}

export function printMetrics(part: MetricsPart): string {
  return table([
    [
      'turns',
      'metrics ms/rollout',
      'worker ms/rollout',
      '%',
      'series',
      'worker scrape ms',
      'gateway scrape ms',
    ],
    [
      part.turns,
      part.metrics_ms_per_rollout,
      part.worker_ms_per_rollout,
      part.share_percent,
      part.series,
      part.scrape_ms.worker,
      part.scrape_ms.gateway,
    ],
  ]);
}
