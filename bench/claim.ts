/** How long a rollout takes from its claim to the first question of its model, image there: in a sandbox of its own, and in a warm one. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage } from 'node:http';
import type { RuntimeName, Seconds } from '@swefarm/shared';
import { startScriptedPolicy } from '@swefarm/testkit';
import { type BenchEnvironment, type BenchWorker, openEnvironment, runBatch, startWorker } from './farm.ts';
import { table } from './print.ts';
import { usableRuntimes } from './sandbox.ts';
import type { Skipped } from './shell.ts';
import { median, percentile, rounded } from './statistics.ts';
import type { Subject } from './subject.ts';

export type ClaimCell = {
  runtime: RuntimeName;
  /** `cold`: nothing waits for the rollout. `warm`: a sandbox does. */
  sandbox: 'cold' | 'warm';
  /** Milliseconds of each rollout from its claim in the journal to the first question. */
  ms: number[];
  /** Median milliseconds of the stages before the agent. */
  stages: { image: number; sandbox: number };
  /** How many rollouts of the worker took a warm sandbox, and how many did not. */
  hits: number;
  misses: number;
};

export type ClaimPart = { rollouts: number; cells: ClaimCell[]; skipped: Skipped[] };

const AIMS_MS: Record<string, number> = { 'docker cold': 250, 'rootfs cold': 60 };
const WARM_AIM_MS = 10;
/** Time for the pool to make the next sandbox while this one works. */
const WORK_MS = 700;

export async function measureClaim(subject: Subject, rollouts: number): Promise<ClaimPart> {
  await using environment = await openEnvironment();
  await using policy = await startScriptedPolicy({
    script: { conversations: [{ variants: [[{ delay_ms: WORK_MS, submit: true }]] }] },
    tokens: false,
  });
  const { usable, skipped } = await usableRuntimes();
  const cells: ClaimCell[] = [];
  for (const runtime of usable)
    for (const sandbox of ['cold', 'warm'] as const)
      cells.push(await measureCell({ environment, subject, url: policy.url, rollouts }, runtime, sandbox));
  return { rollouts, cells, skipped };
}

type Setting = { environment: BenchEnvironment; subject: Subject; url: string; rollouts: number };

async function measureCell(
  { environment, subject, url, rollouts }: Setting,
  runtime: RuntimeName,
  sandbox: ClaimCell['sandbox'],
): Promise<ClaimCell> {
  const flags = sandbox === 'warm' ? ['--warm-sandboxes', '1', '--warm-idle-cpus', '0'] : [];
  await using worker = await startWorker(environment, runtime, 1, flags);
  const run = { policyUrl: [url], activate: ':', eval: false };
  // The image is prepared, and code is compiled.
  await runBatch(worker, subject.instance, 2, run);
  const before = await warmCounts(worker);
  using questions = hearQuestions();
  // The first rollout finds no sandbox that was made for it.
  const { results } = await runBatch(worker, subject.instance, rollouts + 1, run);
  const claims = await Promise.all(results.map((one) => claimedAt(worker, one.rollout_id)));
  const inOrder = results.map((one, at) => ({ one, at: claims[at] ?? 0 })).sort((a, b) => a.at - b.at);
  const ms = inOrder.map(({ at }) => (questions.at.find((asked) => asked >= at) ?? Number.NaN) - at).slice(1);
  const stage = (name: keyof Seconds): number =>
    rounded(1000 * median(inOrder.slice(1).map(({ one }) => one.seconds[name] ?? 0)), 0);
  const after = await warmCounts(worker);
  console.error(`  ${runtime}, ${sandbox}: ${median(ms)} ms`);
  return {
    ...{ runtime, sandbox, ms, stages: { image: stage('image'), sandbox: stage('sandbox') } },
    hits: after.hits - before.hits,
    misses: after.misses - before.misses,
  };
}

async function claimedAt({ farm }: BenchWorker, rolloutId: string): Promise<number> {
  const [first] = await farm.journal.read(rolloutId);
  return first?.claimed_at ?? Number.NaN;
}

async function warmCounts({ metricsUrl }: BenchWorker): Promise<{ hits: number; misses: number }> {
  const text = await (await fetch(metricsUrl)).text();
  const of = (found: string): number =>
    Number(
      new RegExp(`^swefarm_worker_warm_asked_total\\{found="${found}"\\} (\\d+)$`, 'm').exec(text)?.[1] ?? 0,
    );
  return { hits: of('hit'), misses: of('miss') };
}

/** When each question reaches this process, in milliseconds since the epoch: the journal's clock, on one machine. */
function hearQuestions(): Disposable & { at: readonly number[] } {
  const channel = 'http.server.request.start';
  const at: number[] = [];
  const onRequest = (message: unknown): void => {
    const { request } = message as { request: IncomingMessage };
    if (request.method === 'POST' && request.url?.endsWith('/chat/completions'))
      at.push(rounded(performance.timeOrigin + performance.now(), 1));
  };
  subscribe(channel, onRequest);
  return { at, [Symbol.dispose]: () => void unsubscribe(channel, onRequest) };
}

export function printClaim({ cells, rollouts, skipped }: ClaimPart): string {
  const rows = cells.map(({ runtime, sandbox, ms, stages, hits, misses }) => [
    ...[
      runtime,
      sandbox,
      rounded(median(ms), 0),
      rounded(percentile(ms, 90), 0),
      rounded(Math.max(...ms), 0),
    ],
    ...[stages.image, stages.sandbox, hits, misses],
    sandbox === 'warm' ? WARM_AIM_MS : (AIMS_MS[`${runtime} ${sandbox}`] ?? '-'),
  ]);
  const head = ['runtime', 'sandbox', 'p50', 'p90', 'worst', 'image', 'start', 'hits', 'misses', 'aim'];
  return [
    `From the claim to the first question, ms (${rollouts} rollouts one after another)`,
    table([head, ...rows]),
    ...skipped.map(({ what, why }) => `not measured: ${what} (${why})`),
  ].join('\n');
}
