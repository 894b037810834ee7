/**
 * Measures a step of rollouts on a real vLLM on CPU, alternately with and without admission by load. The tiny model never calls a command, so
 * a long observation follows each answer, and prompts grow until the KV cache is full.
 * usage: admissionvllm.ts [--folder FOLDER] [--reps N] [--rollouts N] [--turns N]; later runs reuse packages and model of the folder
 */
import { parseArgs } from 'node:util';
import { newRunRecord } from '@swefarm/runs';
import { startVllm, type Vllm } from '@swefarm/worker/test/vllm.ts';
import { watchPools } from './admission.ts';
import { type BenchWorker, openEnvironment, runSubmission, startWorker } from './farm.ts';
import { table } from './print.ts';
import { cheapestRuntime } from './sandbox.ts';
import { median, rounded } from './statistics.ts';
import { prepareSubject } from './subject.ts';

/** 32,768 tokens of KV: the rollouts together need ten times that. */
const BLOCKS = 1024;
const OBSERVATION = 'The answer has no command. '.repeat(50);
const COUNTERS = {
  preemptions: 'vllm:num_preemptions_total',
  computed_tokens: 'vllm:iteration_tokens_total_sum',
  sampled_tokens: 'vllm:generation_tokens_total',
  cached_tokens: 'vllm:prompt_tokens_cached_total',
} as const;
const MODES = ['off', 'auto'] as const;
type Mode = (typeof MODES)[number];
type Step = Record<keyof typeof COUNTERS | 'seconds' | 'most_playing' | 'second_attempts', number>;

const { values } = parseArgs({
  options: {
    folder: { type: 'string', default: '.swefarm/cache/vllm' },
    reps: { type: 'string', default: '3' },
    rollouts: { type: 'string', default: '64' },
    turns: { type: 'string', default: '10' },
  },
});
const [reps, rollouts, turns] = [values.reps, values.rollouts, values.turns].map(Number) as [
  number,
  number,
  number,
];

async function countersOf(server: Vllm): Promise<Record<keyof typeof COUNTERS, number>> {
  const entries = Object.entries(COUNTERS).map(
    async ([name, metric]) => [name, (await server.metric(metric)) ?? Number.NaN] as const,
  );
  return Object.fromEntries(await Promise.all(entries)) as Record<keyof typeof COUNTERS, number>;
}

async function playStep(worker: BenchWorker, server: Vllm, admission: Mode): Promise<Step> {
  // Without the reset, this step would reuse prefixes that the previous step cached.
  await fetch(server.url.replace('/v1', '/reset_prefix_cache'), { method: 'POST' });
  const before = await countersOf(server);
  const flags = {
    ...{ agent: 'mini', model: 'tiny', policyUrl: [server.url], tokenMode: 'token-in', admission },
    ...{
      temperature: 1,
      groupSize: rollouts,
      stepLimit: turns,
      formatLimit: 10_000,
      maxTokens: 64,
      topK: -1,
      patience: 600,
    },
    ...{ activate: ':', eval: false },
  };
  const { instance } = subject;
  const dataset = { path: 'bench', sha256: '', instances: [instance] };
  const record = newRunRecord({ dataset, flags }, false);
  record.agent.prompt_overrides = { format_error: OBSERVATION };
  if (record.policy) record.policy.extra_body = { ignore_eos: true };
  const over = new AbortController();
  const watching = watchPools(worker.farm, new URL(server.url).host, over.signal);
  const { seconds, results } = await runSubmission(worker, { record, instances: [instance] }, rollouts);
  over.abort();
  const after = await countersOf(server);
  const spent = Object.keys(COUNTERS).map((name) => {
    const key = name as keyof typeof COUNTERS;
    return [key, after[key] - before[key]] as const;
  });
  return {
    ...(Object.fromEntries(spent) as Record<keyof typeof COUNTERS, number>),
    seconds,
    most_playing: (await watching).most_playing,
    second_attempts: results.reduce((sum, { attempt }) => sum + attempt - 1, 0),
  };
}

const subject = await prepareSubject();
await using environment = await openEnvironment();
await using server = await startVllm(values.folder, { blocks: BLOCKS, sequences: rollouts });
await using worker = await startWorker(environment, await cheapestRuntime(), rollouts);
await playStep(worker, server, 'off');
const steps: Record<Mode, Step[]> = { off: [], auto: [] };
for (let rep = 0; rep < reps; rep++) {
  for (const mode of rep % 2 === 0 ? MODES : MODES.toReversed()) {
    const step = await playStep(worker, server, mode);
    steps[mode].push(step);
    console.error(`${mode}: ${JSON.stringify(step)}`);
  }
}
const keys = Object.keys(steps.off[0] ?? {}) as (keyof Step)[];
const middle = (mode: Mode, key: keyof Step) => median(steps[mode].map((step) => step[key]));
console.log(
  table([
    ['median', ...keys],
    ...MODES.map((mode) => [mode, ...keys.map((key) => String(rounded(middle(mode, key), 1)))]),
    ['auto/off', ...keys.map((key) => String(rounded(middle('auto', key) / middle('off', key), 2)))],
  ]),
);
