/**
 * Measures a step of rollouts on an endpoint that slows with its load and preempts as vLLM does, with admission by load and without, in turn.
 * The engine of the endpoint is simulated (testkit/src/policy/engine.ts); workers, sandboxes and Redis are real.
 */
import { type Farm, sleepAtMost } from '@swefarm/shared';
import { generateScript } from '@swefarm/testkit';
import { type BenchWorker, openEnvironment, runBatch, startPolicy, startWorker } from './farm.ts';
import { table } from './print.ts';
import { cheapestRuntime } from './sandbox.ts';
import { median, rounded } from './statistics.ts';
import type { Subject } from './subject.ts';

/** `engine`: options of testkit's engine. */
export type AdmissionSize = {
  rollouts: number;
  turns: number;
  tokens: number;
  engine: Record<string, number>;
};

const MODES = ['off', 'auto'] as const;
type Mode = (typeof MODES)[number];

type Step = {
  seconds: number;
  preemptions: number;
  preempted_tokens: number;
  prefilled_tokens: number;
  reused_tokens: number;
  generated_tokens: number;
  /** Highest number of rollouts that played at once, and highest number that waited without a sandbox. */
  most_playing: number;
  most_waiting: number;
  /** Attempts after the first. Each started another sandbox for the same rollout. */
  retries: number;
};

export type AdmissionPart = AdmissionSize & {
  steps: Record<Mode, Step[]>;
  /** Medians over the rounds of (with admission / without). */
  ratios: { seconds: number; preempted_tokens: number; prefilled_tokens: number };
};

export async function measureAdmission(
  subject: Subject,
  { rollouts, turns, tokens, engine }: AdmissionSize,
  reps: number,
): Promise<AdmissionPart> {
  await using environment = await openEnvironment();
  const script = generateScript({ turns, targetTokens: tokens, variants: 4 });
  // The polls are faster by the same factor as the engine's clock.
  const polling = ['--admission-poll-seconds', String(2 / (engine.speed ?? 1))];
  await using worker = await startWorker(environment, await cheapestRuntime(), rollouts, polling);
  const steps: AdmissionPart['steps'] = { off: [], auto: [] };
  await using warm = await startPolicy(environment, 'admission-warm', script, ['--tokens', 'off']);
  await runBatch(worker, subject.instance, 4, { policyUrl: [warm.url], activate: ':', eval: false });
  for (let rep = 0; rep < reps; rep++) {
    for (const mode of rep % 2 === 0 ? MODES : MODES.toReversed()) {
      // A new process has empty caches, and its address has a new pool.
      const flags = ['--tokens', 'off', '--engine', JSON.stringify(engine)];
      await using policy = await startPolicy(environment, `admission-${mode}-${rep}`, script, flags);
      const step = await playStep(worker, subject, rollouts, policy.url, mode);
      steps[mode].push(step);
      console.error(`  ${mode}: ${step.seconds.toFixed(1)} s, ${step.preempted_tokens} preempted tokens`);
    }
  }
  const ratio = (key: 'seconds' | 'preempted_tokens' | 'prefilled_tokens'): number =>
    rounded(median(steps.auto.map((step, at) => step[key] / (steps.off[at]?.[key] ?? Number.NaN))), 2);
  const ratios = {
    seconds: ratio('seconds'),
    preempted_tokens: ratio('preempted_tokens'),
    prefilled_tokens: ratio('prefilled_tokens'),
  };
  return { rollouts, turns, tokens, engine, steps, ratios };
}

type EngineStats = Omit<Step, 'seconds' | 'most_playing' | 'most_waiting' | 'retries'>;

async function playStep(
  worker: BenchWorker,
  { instance }: Subject,
  rollouts: number,
  url: string,
  admission: Mode,
): Promise<Step> {
  const over = new AbortController();
  const watching = watchPools(worker.farm, new URL(url).host, over.signal);
  const flags = { policyUrl: [url], activate: ':', eval: false, admission };
  const { seconds, results } = await runBatch(worker, instance, rollouts, flags);
  over.abort();
  const response = await fetch(new URL('/stats', url));
  const { engine } = (await response.json()) as { engine: EngineStats };
  const { preemptions, preempted_tokens, prefilled_tokens, reused_tokens, generated_tokens } = engine;
  return {
    seconds,
    ...{ preemptions, preempted_tokens, prefilled_tokens, reused_tokens, generated_tokens },
    ...(await watching),
    retries: results.reduce((sum, { attempt }) => sum + attempt - 1, 0),
  };
}

const SAMPLE_MS = 500;

export async function watchPools(farm: Farm, pool: string, signal: AbortSignal) {
  const most = { most_playing: 0, most_waiting: 0 };
  while (!signal.aborted) {
    const found = (await farm.admissions.list()).find((one) => one.pool === pool);
    most.most_playing = Math.max(most.most_playing, found?.playing ?? 0);
    most.most_waiting = Math.max(most.most_waiting, found?.waiting ?? 0);
    await sleepAtMost(SAMPLE_MS, signal);
  }
  return most;
}

export function printAdmission({ rollouts, turns, tokens, engine, steps, ratios }: AdmissionPart): string {
  const mid = (mode: Mode, key: keyof Step): number =>
    rounded(median(steps[mode].map((step) => step[key])), 1);
  const row = (mode: Mode): (string | number)[] => [
    mode,
    ...(['seconds', 'preemptions', 'preempted_tokens', 'prefilled_tokens', 'reused_tokens'] as const).map(
      (key) => mid(mode, key),
    ),
    ...(['most_playing', 'most_waiting', 'retries'] as const).map((key) => mid(mode, key)),
  ];
  return [
    `A step of ${rollouts} rollouts of ${turns} turns that grow to ${tokens} tokens x ${engine.scale ?? 1}, on a KV cache of ${engine.kv_tokens} tokens`,
    table([
      [
        'admission',
        'seconds',
        'preemptions',
        'preempted tokens',
        'prefilled',
        'reused',
        'play at most',
        'wait',
        'retries',
      ],
      row('off'),
      row('auto'),
    ]),
    `auto/off: ${ratios.seconds} of the time, ${ratios.preempted_tokens} of the preempted tokens, ${ratios.prefilled_tokens} of the prefilled tokens`,
  ].join('\n');
}
