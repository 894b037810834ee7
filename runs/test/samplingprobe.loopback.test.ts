/** The probe against an endpoint that samples: its verdict on log-probabilities, and its requests beside those of rollouts. */
import { openTurnClient, type Post } from '@swefarm/policy';
import { PolicyConfig } from '@swefarm/shared';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { probeLogProbs } from '../src/probe/logprobs.ts';
import { probeTokens } from '../src/probe/tokenprobe.ts';
import { type SoftmaxOptions, startSoftmax } from './softmax.ts';

const signal = new AbortController().signal;
const configOf = (url: string, over: object = {}) =>
  PolicyConfig.parse({ urls: [url], model: 'm', token_mode: 'token-in', require_tokens: true, ...over });

test.each<[string, SoftmaxOptions, object, string]>([
  ['a trained model', { logprobs: 'raw', spread: 2 }, {}, 'raw'],
  ['a trained model', { logprobs: 'processed', spread: 2 }, {}, 'processed'],
  ['random weights', { logprobs: 'raw', spread: 0.3 }, {}, 'raw'],
  ['random weights', { logprobs: 'processed', spread: 0.3 }, {}, 'processed'],
  ['equally likely tokens', { logprobs: 'raw', spread: 0 }, {}, 'unknown'],
  ['equally likely tokens', { logprobs: 'processed', spread: 0 }, {}, 'unknown'],
  ['a certain model', { logprobs: 'raw', spread: 1, certain: 40 }, {}, 'unknown'],
  ['a certain model', { logprobs: 'processed', spread: 1, certain: 40 }, {}, 'unknown'],
  ['after the temperature, before top_k', { logprobs: 'temperature', spread: 2 }, {}, 'processed'],
  ['after the temperature, before top_k', { logprobs: 'temperature', spread: 2 }, { top_k: 5 }, 'raw'],
  ['after all sampling', { logprobs: 'processed', spread: 2 }, { top_k: 5 }, 'processed'],
  ['a server that samples in one way only', { logprobs: 'raw', spread: 2, strict: true }, {}, 'unknown'],
])('%s, %j, %j: %s', async (_, options, sampling, verdict) => {
  const server = await startSoftmax(options);
  for (const token_mode of ['token-in', 'text']) {
    const config = configOf(server.url, { sampling, token_mode });
    expect(await probeLogProbs(server.url, { config, apiKey: null, signal })).toMatchObject({ verdict });
  }
});

test.each<[SoftmaxOptions['logprobs'], object, boolean, string]>([
  ['raw', { temperature: 1 }, false, 'ok'],
  ['raw', { temperature: 0.7 }, false, 'fail'],
  ['raw', { top_p: 0.9 }, false, 'fail'],
  ['raw', { temperature: 0.7 }, true, 'warn'],
  ['processed', { temperature: 0.7, top_k: 5 }, false, 'ok'],
])(
  'log-probabilities %s, sampled with %j, accepted: %s: %s',
  async (logprobs, sampling, accepted, status) => {
    const server = await startSoftmax({ logprobs, spread: 2 });
    const config = configOf(server.url, { sampling: { ...sampling, max_tokens: 20 } });
    const options = { config, apiKey: null, signal, acceptRawLogprobs: accepted };
    const found = (await probeTokens(server.url, options)).find(({ subject }) => subject === 'logprobs');
    expect(found).toMatchObject({ status, detail: expect.stringContaining(`logprobs: ${logprobs}`) });
    if (status === 'fail') expect(found?.remedy).toContain('--accept-raw-logprobs');
  },
);

test.each<[string, object, object, RegExp]>([
  [
    'room',
    { max_tokens: 100 },
    {},
    /^ok .* of \d+ tokens and an answer of up to 100 have room in 4096 tokens/,
  ],
  [
    'no room for the answer',
    { max_tokens: 4090 },
    {},
    /^fail .* have no room in 4096 tokens → set --max-tokens to at most \d+/,
  ],
  ['no room in the run’s own limit', { max_tokens: 290 }, { contextLimit: 300 }, /^fail .* in 300 tokens/],
  [
    'a problem that is longer than the context',
    { max_tokens: 100 },
    { problem: 'x'.repeat(5000) },
    /^fail .* → serve the model with a longer/,
  ],
])('the context: %s', async (_, sampling, over, line) => {
  const server = await startSoftmax({ logprobs: 'processed', spread: 2 });
  const config = configOf(server.url, { sampling });
  const found = await probeTokens(server.url, { config, apiKey: null, signal, ...over });
  const { status, detail, remedy } = found.find(({ subject }) => subject === 'context') ?? {};
  expect(`${status} ${detail} → ${remedy}`).toMatch(line);
});

test('the probe requests whole answers from an endpoint that streams no token ids', async () => {
  const server = await startSoftmax({ logprobs: 'processed', spread: 2, wholeChats: true });
  const config = configOf(server.url, { token_mode: 'text' });
  const [first] = await probeTokens(server.url, { config, apiKey: null, signal });
  expect(first?.detail).toMatch(/^turn 2: the prompt does not continue/);
  expect(server.bodies.map(({ stream }) => stream ?? false).slice(0, 3)).toEqual([true, false, false]);
});

const sampling = fc.record(
  {
    temperature: fc.double({ min: 0, max: 2, noNaN: true }),
    top_p: fc.double({ min: 0.01, max: 1, noNaN: true }),
    top_k: fc.constantFrom(-1, 1, 20),
    min_p: fc.constantFrom(0, 0.1),
    repetition_penalty: fc.constantFrom(1, 1.1),
    presence_penalty: fc.constantFrom(0, 0.5),
    frequency_penalty: fc.constantFrom(0, 0.5),
    stop: fc.array(fc.constantFrom('END', '\n\n'), { maxLength: 2 }),
    max_tokens: fc.integer({ min: 1, max: 30 }),
    seed: fc.maxSafeInteger(),
  },
  { requiredKeys: [] },
);
const extra_body = fc.record(
  {
    min_tokens: fc.nat(3),
    top_k: fc.constantFrom(7, null),
    chat_template_kwargs: fc.constant({ a: true }),
    logit_bias: fc.constant({}),
  },
  { requiredKeys: [] },
);

test('the requests of the probe and of a rollout differ only in their messages', async () => {
  const server = await startSoftmax({ logprobs: 'processed', spread: 2 });
  await fc.assert(
    fc.asyncProperty(
      sampling,
      extra_body,
      fc.constantFrom('token-in', 'echo', 'text'),
      async (keys, extra, mode) => {
        const config = configOf(server.url, { sampling: keys, extra_body: extra, token_mode: mode });
        server.bodies.length = 0;
        await probeTokens(server.url, { config, apiKey: null, signal });
        const [probed = {}] = server.bodies;
        expect(bare(await rollout(config, 'probe.probe.0'), mode)).toEqual(bare(probed, mode));
      },
    ),
    { numRuns: 25, seed: 14 },
  );
});

/** The body of the first turn of a rollout. `rolloutId` decides the seed. */
async function rollout(config: PolicyConfig, rolloutId: string): Promise<Record<string, unknown>> {
  let body = {};
  const post: Post = async (route, pieces) => {
    if (route === 'tokenize') return Buffer.from('{"tokens":[1,2,3]}');
    if (route === 'detokenize') return Buffer.from('{"prompt":""}');
    body = JSON.parse(pieces.map(String).join(''));
    throw new Error('enough');
  };
  const limits = { contextLimit: null, sequenceBudget: null, modelLength: async () => 4096 };
  const client = await openTurnClient(config, { rolloutId, limits });
  const messages = [
    { role: 'system' as const, content: 'Other words.' },
    { role: 'user' as const, content: 'Repair this.' },
  ];
  await client.ask(messages, [], post).catch(() => undefined);
  return body;
}

/** Returns the body without messages and prompt. If only the context limits the answer, adds the length of the prompt to max_tokens. */
function bare(body: Record<string, unknown>, mode: string): Record<string, unknown> {
  const { messages: _m, prompt, ...rest } = body;
  const most = Number(rest.max_tokens);
  if (mode !== 'token-in' || most < 100) return rest;
  return { ...rest, max_tokens: most + (prompt as number[]).length };
}
