/** Streamed answers and their interruptions: mode token-in continues the received ids. */
import { PolicyConfig, RolloutFailure } from '@swefarm/shared';
import { describe, expect, test, vi } from 'vitest';
import { completion, type Handler, sendError, sendJson } from './endpoint.ts';
import { never, policyAt, START } from './scripted.ts';
import {
  begin,
  chatEvents,
  events,
  expectSame,
  oneTurn,
  server,
  slowly,
  streamed,
  tokenEndpoint,
  undisturbed,
} from './streaming.ts';

vi.setConfig({ testTimeout: 180_000 });

test('a streamed answer equals an unstreamed one', async () => {
  const whole = await begin({ urls: [(await server()).url], config: { stream: 'off' } });
  expectSame(await undisturbed(), whole);
});

describe('an interrupted answer continues from its received tokens', () => {
  test.each([
    ['the engine aborts it', 'aborted'],
    ['the connection is cut', 'cut'],
  ] as const)('%s', async (_, kind) => {
    const plain = await undisturbed();
    const broken = await server({ faults: [{ kind, turn: 1, times: 3 }] });
    const end = await begin({ urls: [broken.url] });
    expectSame(end, plain);
    // Each of the three interrupted requests returned half of the remaining tokens, so none of them is a reason to give up.
    expect(end.trajectory.turns.map(({ spans }) => spans?.length)).toEqual([1, 4, 1]);
    expect(broken.stats().requests).toBe(6);
  });
  test.each(['cut', 'aborted'] as const)(
    '%s unstreamed, the whole answer is requested again',
    async (kind) => {
      const plain = await undisturbed();
      const broken = await server({ faults: [{ kind, turn: 1, times: 1 }] });
      const end = await begin({ urls: [broken.url], config: { stream: 'off' } });
      expectSame(end, plain);
      expect(end.trajectory.turns.map(({ spans }) => spans?.length)).toEqual([1, 1, 1]);
    },
  );
  test('an engine that aborts every request ends the rollout', async () => {
    const broken = await server({ faults: [{ kind: 'aborted', turn: 0 }] });
    await expect(begin({ urls: [broken.url] })).rejects.toMatchObject({
      failureClass: 'policy_server_error',
    });
    expect(broken.stats().requests).toBeLessThan(40);
  });
});

test('the rest is requested with fewer tokens, and no id is received twice', async () => {
  const { asked, bodies } = await oneTurn(
    { sampling: { max_tokens: 64 }, extra_body: { min_tokens: 4 } },
    streamed(events([8, 9], 'abort', [1, 2, 3])),
    streamed(events([10, 11], 'stop', [1, 2, 3, 8, 9])),
  );
  expect(await asked).toMatchObject({
    message: { content: 't8 t9 t10 t11 ' },
    prompt_token_ids: Int32Array.of(1, 2, 3),
    generation_token_ids: Int32Array.of(8, 9, 10, 11),
    generation_log_probs: Float32Array.of(-1, -1.125, -1.25, -1.375),
    spans: [{ tokens: 2 }, { tokens: 2 }],
  });
  expect(bodies().map(({ prompt, max_tokens, min_tokens }) => [prompt, max_tokens, min_tokens])).toEqual([
    [[1, 2, 3], 64, 4],
    [[1, 2, 3, 8, 9], 62, 2],
  ]);
});

test('an answer interrupted after its last token is complete', async () => {
  const { asked, bodies } = await oneTurn(
    { sampling: { max_tokens: 2 } },
    streamed(events([8, 9], 'abort', [1, 2, 3])),
  );
  const reply = await asked;
  expect(reply).toMatchObject({ finish_reason: 'length', generation_token_ids: Int32Array.of(8, 9) });
  expect(reply).toHaveProperty('spans', [{ version: 'v', tokens: 2 }]);
  expect(bodies()).toHaveLength(1);
});

test.each<[string, Handler]>([
  ['says what went wrong', streamed([...events([8], null), 'data: {"error":{"message":"dead"}}\n\n'])],
  [
    'is cut where a log-probability is missing',
    streamed(
      events([8], null).map((one) => one.replace('-1', 'null')),
      'cut',
    ),
  ],
  ['ends with finish_reason error', streamed(events([8, 9], 'error'))],
])('a stream that %s returns no tokens', async (_, bad) => {
  const { asked, bodies } = await oneTurn({}, bad, streamed(events([10], 'stop')));
  expect(await asked).toMatchObject({ generation_token_ids: Int32Array.of(10), spans: [{ tokens: 1 }] });
  expect(bodies().map(({ prompt }) => prompt)).toEqual([
    [1, 2, 3],
    [1, 2, 3],
  ]);
});

test.each([
  ['token-in', events([8], 'abort'), events([9, 10, 11], null), events([12], 'stop'), 't8 t9 t10 t11 t12 '],
  ['text', chatEvents(['no'], 'abort'), chatEvents(['n', 'o'], null), chatEvents(['yes'], 'stop'), 'yes'],
])(
  'in mode %s patience runs while the endpoint fails, not while it answers',
  async (mode, first, long, last, text) => {
    // The second request alone takes longer than the patience.
    const { asked, bodies } = await oneTurn(
      { token_mode: mode, patience: 3 },
      streamed(first),
      slowly([...long], 4_000 / long.length),
      streamed(last),
    );
    expect(await asked).toMatchObject({ message: { content: text } });
    expect(bodies()).toHaveLength(3);
  },
);

describe.each([
  ['token-in', events([8, 9], 'stop', [1, 2, 3]), 't8 t9 '],
  ['text', chatEvents(['t8 ', 't9 '], 'stop'), 't8 t9 '],
])('in mode %s an answer with a finish reason is complete', (mode, events, text) => {
  const DONE = 'data: [DONE]\n\n';
  test.each<[string, Handler]>([
    ['the connection is cut behind it', streamed(events, 'cut')],
    ['the connection is cut behind [DONE]', streamed([...events, DONE], 'cut')],
    ['the connection stays open behind [DONE]', streamed([...events, DONE], 'nothing')],
    ['nothing more comes', streamed(events, 'nothing')],
  ])('%s', async (what, handler) => {
    const silent = what === 'nothing more comes';
    const { asked, bodies } = await oneTurn(
      { token_mode: mode, request_timeout: silent ? 3 : 20 },
      handler,
      sendError(400, 'asked twice'),
    );
    const reply = await asked;
    expect(reply).toMatchObject({ message: { content: text }, finish_reason: 'stop' });
    expect(reply.seconds).toBeLessThan(15);
    expect(bodies()).toHaveLength(1);
  });
});

test('a stream without token counts is counted by chunks, and later answers are not streamed', async () => {
  const { url, bodies } = await tokenEndpoint(
    streamed(chatEvents(['a', 'b', 'c'], 'stop')),
    sendJson(completion('whole')),
  );
  using policy = policyAt(PolicyConfig.parse({ urls: [url], model: 'm', version: 'v' }));
  expect(await policy.complete(START, [], never)).toMatchObject({ message: { content: 'abc' }, usage: null });
  expect(policy.throughput()).toMatchObject({ tokens: 3 });
  expect(await policy.complete(START, [], never)).toMatchObject({ usage: { completion_tokens: 2 } });
  expect(policy.throughput()).toMatchObject({ tokens: 5 });
  expect(bodies().map(({ stream }) => stream)).toEqual([true, undefined]);
  using asTold = policyAt(PolicyConfig.parse({ urls: [url], model: 'm', version: 'v', stream: 'on' }));
  await asTold.complete(START, [], never);
  expect(bodies().at(-1)).toMatchObject({ stream: true });
});

test('with stop strings no token is continued: the server withholds text of ids that it sent', async () => {
  const lags = (one: string) => one.replace('"t9 "', '""').replace('"t10 "', '"t9 t"');
  const { asked, bodies } = await oneTurn(
    { sampling: { stop: ['END'] } },
    streamed(events([8, 9, 10], null, [1, 2, 3]).map(lags), 'cut'),
    streamed(events([8, 9, 10], 'stop', [1, 2, 3])),
  );
  expect(await asked).toMatchObject({
    message: { content: 't8 t9 t10 ' },
    generation_token_ids: Int32Array.of(8, 9, 10),
    spans: [{ tokens: 3 }],
  });
  expect(bodies().map(({ prompt }) => prompt)).toEqual([
    [1, 2, 3],
    [1, 2, 3],
  ]);
});

test('an endpoint that continues from other ids than it received is detected', async () => {
  const { asked } = await oneTurn(
    {},
    streamed(events([8, 9], 'abort', [1, 2, 3])),
    streamed(events([10], 'stop', [1, 2, 3, 8, 7])),
  );
  await expect(asked).rejects.toMatchObject({ failureClass: 'policy_tokens' });
});

test('a server that refuses streams gets unstreamed requests from then on', async () => {
  const { asked, bodies } = await oneTurn(
    {},
    sendError(400, 'stream: Extra inputs are not permitted'),
    sendJson({
      choices: [{ text: 'x', token_ids: [7], logprobs: { token_logprobs: [-1] }, finish_reason: 'stop' }],
    }),
  );
  expect(await asked).toMatchObject({ generation_token_ids: Int32Array.of(7) });
  expect(bodies().map(({ stream }) => stream)).toEqual([true, undefined]);
});

test('silence between two chunks is policy_silent, silence within the limit is not', async () => {
  const { asked, bodies } = await oneTurn(
    { request_timeout: 2 },
    streamed(events([8, 9], null, [1, 2, 3]), 'nothing'),
  );
  const failure = await asked.catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(RolloutFailure);
  expect(String(failure)).toContain('no more of the answer within 2 s');
  expect(failure).toMatchObject({ failureClass: 'policy_silent' });
  expect(bodies()).toHaveLength(1);
});
