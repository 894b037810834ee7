/** The policy client against a server of its own: what is sent, what is read, and the table of faults. */
import {
  closePolicyConnections,
  type Message,
  NO_LIMITS,
  originsOf,
  PolicyConfig,
  type PolicyKey,
  RolloutFailure,
  Secret,
  turnSeed,
} from '@swefarm/shared';
import { afterAll, describe, expect, test } from 'vitest';
import type { PolicyReply } from '../../src/agent/agent.ts';
import { NEVER_PAUSED } from '../../src/agent/pause.ts';
import { openEndpoints } from '../../src/agent/policy/endpoints.ts';
import { openPolicy } from '../../src/agent/policy/policy.ts';
import {
  completion,
  completionWithTokens,
  type Endpoint,
  type Handler,
  sendError,
  sendJson,
  sendText,
  startEndpoint,
} from './endpoint.ts';

afterAll(closePolicyConnections);

const never = new AbortController().signal;
const START: Message[] = [{ role: 'user', content: 'hi' }];
const warnings: string[] = [];
const log = { warn: (_: Record<string, unknown>, message: string) => void warnings.push(message) };
const KEY = 'sk-very-secret';

const unfollowed = {
  pause: NEVER_PAUSED,
  record: () => null,
  refresh: async () => undefined,
  [Symbol.dispose]: () => undefined,
};
/** The operator's key, for the endpoints that the operator named. */
const keyFor = (...urls: string[]): PolicyKey => ({ secret: new Secret(KEY), origins: originsOf(urls) });
const open = (url: string, config: Record<string, unknown> = {}, apiKey: PolicyKey | null = null) =>
  openPolicy(PolicyConfig.parse({ urls: [url], model: 'm', version: 'v', patience: 3, ...config }), {
    apiKey,
    rolloutId: 'run.a__b-1.0',
    attempt: 2,
    limits: NO_LIMITS,
    followed: unfollowed,
    endpoints: openEndpoints(),
    log,
  });
const ask = (endpoint: Endpoint, config: Record<string, unknown> = {}, messages = START) =>
  open(endpoint.url, config).complete(messages, [], never);
const answered = async (asked: ReturnType<typeof ask>): Promise<PolicyReply> => {
  const reply = await asked;
  if ('context_overflow' in reply) throw new Error(`overflow: ${reply.message}`);
  return reply;
};
const failureOf = async (asked: Promise<unknown>): Promise<RolloutFailure> => {
  const error = await asked.then(
    () => new Error('it answered'),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof RolloutFailure)) throw error;
  return error;
};

describe('what is sent', () => {
  test('model, messages, sampling and extra fields, and who asks', async () => {
    await using endpoint = await startEndpoint(sendJson(completion('ok')));
    const tools = [
      { type: 'function' as const, function: { name: 'bash', description: 'd', parameters: {} } },
    ];
    const policy = open(
      endpoint.url,
      {
        sampling: { temperature: 0.7, top_p: 0.9, max_tokens: 100, seed: 1 },
        extra_body: { chat_template_kwargs: { enable_thinking: false }, top_k: 20 },
      },
      keyFor(endpoint.url),
    );
    await policy.complete(START, tools, never);
    const [request] = endpoint.requests;
    expect(request?.path).toBe('/v1/chat/completions');
    expect(request?.body).toEqual({
      model: 'm',
      messages: START,
      tools,
      temperature: 0.7,
      top_p: 0.9,
      max_tokens: 100,
      seed: turnSeed(1, 'run.a__b-1.0', 1),
      stream: true,
      stream_options: { include_usage: true },
      chat_template_kwargs: { enable_thinking: false },
      top_k: 20,
    });
    expect(request?.headers).toMatchObject({
      authorization: `Bearer ${KEY}`,
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(JSON.stringify(request?.body))),
      'x-swefarm-rollout': 'run.a__b-1.0',
      'x-swefarm-attempt': '2',
    });
  });
  test('no key, no authorization; no tools, no such field; nothing of tokens in mode text', async () => {
    await using endpoint = await startEndpoint(sendJson(completion('ok')));
    await ask(endpoint);
    expect(endpoint.requests[0]?.headers.authorization).toBeUndefined();
    expect(endpoint.requests[0]?.headers['transfer-encoding']).toBeUndefined();
    expect(Object.keys(endpoint.requests[0]?.body ?? {})).toEqual([
      'messages',
      'model',
      'stream',
      'stream_options',
    ]);
  });
  test('an attempt stays on one endpoint, and attempts spread', async () => {
    const config = PolicyConfig.parse({ urls: ['http://a/v1', 'http://b/v1', 'http://c/v1'], model: 'm' });
    const endpoints = openEndpoints();
    const chosen = Array.from({ length: 30 }, (_, attempt) =>
      openPolicy(config, {
        ...{ apiKey: null, rolloutId: 'r.i.0', attempt, limits: NO_LIMITS },
        ...{ followed: unfollowed, endpoints, log },
      }),
    );
    const bound = chosen.map(({ endpoint }) => endpoint);
    expect(chosen.map(({ endpoint }) => endpoint)).toEqual(bound);
    expect(endpoints.views().map(({ load }) => load)).toEqual([10, 10, 10]);
    for (const policy of chosen) policy[Symbol.dispose]();
    expect(endpoints.views()).toEqual([]);
  });
});

describe('what is read', () => {
  test('message without empty fields, finish reason, usage, version', async () => {
    await using endpoint = await startEndpoint(
      sendJson(completion('ok'), 200, { 'x-policy-version': 'step-7' }),
    );
    const reply = await answered(ask(endpoint, { version: 'step-6' }));
    expect(reply).toMatchObject({
      message: { role: 'assistant', content: 'ok' },
      finish_reason: 'stop',
      usage: { prompt_tokens: 3, completion_tokens: 2 },
      prompt_token_ids: null,
      policy_version: { start: 'step-7', end: 'step-7' },
    });
    expect(Object.keys(reply.message).sort()).toEqual(['content', 'role']);
    expect(reply.seconds).toBeGreaterThan(0);
  });
  test('tool calls, reasoning by both names, and unknown fields', async () => {
    const message = {
      role: 'assistant',
      content: null,
      reasoning: 'because',
      provider_field: { a: 1 },
      tool_calls: [
        { id: 't1', type: 'function', index: 0, function: { name: 'bash', arguments: 'Infinity' } },
      ],
    };
    const body = completion(null, {
      choices: [{ index: 0, message, finish_reason: 'tool_calls' }],
      usage: null,
    });
    await using endpoint = await startEndpoint(sendJson(body));
    const reply = await answered(ask(endpoint, { version: 'v0' }));
    expect(reply.message).toEqual({
      role: 'assistant',
      content: null,
      reasoning: 'because',
      reasoning_content: 'because',
      provider_field: { a: 1 },
      tool_calls: [{ id: 't1', type: 'function', function: { name: 'bash', arguments: 'Infinity' } }],
    });
    expect(reply).toMatchObject({ usage: null, policy_version: { start: 'v0', end: 'v0' } });
  });
  test('token ids as vLLM gives them', async () => {
    await using endpoint = await startEndpoint(sendJson(completionWithTokens('ok', [1, 2, 3], [8, 16])));
    const reply = await answered(ask(endpoint, { require_tokens: true }));
    expect(endpoint.requests[0]?.body).toMatchObject({ logprobs: true, return_token_ids: true });
    expect(reply).toMatchObject({
      prompt_token_ids: Int32Array.of(1, 2, 3),
      generation_token_ids: Int32Array.of(8, 16),
      generation_log_probs: Float32Array.of(-1, -2),
    });
  });
  test('token ids as NeMo Gym gives them, on the message, which does not keep them', async () => {
    const message = {
      role: 'assistant',
      content: 'ok',
      prompt_token_ids: [1, 2],
      generation_token_ids: ['7'],
      generation_log_probs: [-0.5],
    };
    await using endpoint = await startEndpoint(
      sendJson(completion('', { choices: [{ message, finish_reason: 'stop' }] })),
    );
    const reply = await answered(ask(endpoint));
    expect(reply.message).toEqual({ role: 'assistant', content: 'ok' });
    expect(reply).toMatchObject({
      prompt_token_ids: Int32Array.of(1, 2),
      generation_token_ids: Int32Array.of(7),
      generation_log_probs: Float32Array.of(-0.5),
    });
  });
  test.each([
    ['an id that is no number', [1, 'x']],
    ['a fraction', [1.5]],
    ['a negative id', [-1]],
    ['an id beyond 31 bits', [2 ** 31]],
  ])('%s makes the list unusable, not wrong', async (_, ids) => {
    await using endpoint = await startEndpoint(
      sendJson({ ...completionWithTokens('ok', [1], [2]), prompt_token_ids: ids }),
    );
    expect((await answered(ask(endpoint))).prompt_token_ids).toBeNull();
  });
});

describe('token mode echo', () => {
  test('the last answer goes back with its ids, earlier ones as they are', async () => {
    await using endpoint = await startEndpoint(
      sendJson(completionWithTokens('one', [1, 2], [8])),
      sendJson(completionWithTokens('two', [1, 2, 8, 3], [16])),
    );
    const policy = open(endpoint.url, { token_mode: 'echo' });
    const messages = [...START];
    for (const next of ['a', 'b', 'c']) {
      const { message } = await answered(policy.complete(messages, [], never));
      messages.push(message, { role: 'user', content: next });
    }
    expect(endpoint.requests[1]?.body.messages[1]).toEqual({
      role: 'assistant',
      content: 'one',
      prompt_token_ids: [1, 2],
      generation_token_ids: [8],
      generation_log_probs: [-1],
    });
    const [, first, , second] = endpoint.requests[2]?.body.messages ?? [];
    expect(first).toEqual({ role: 'assistant', content: 'one' });
    expect(second).toMatchObject({ prompt_token_ids: [1, 2, 8, 3], generation_token_ids: [16] });
    expect(messages[1]).toEqual({ role: 'assistant', content: 'one' });
  });
});

describe('the prompt no longer fits', () => {
  const long: Message[] = [...START, { role: 'assistant', content: 'x' }, { role: 'user', content: 'y' }];
  test.each<[string, Handler]>([
    [
      'vLLM',
      sendError(
        400,
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens",
      ),
    ],
    [
      'vLLM, newer',
      sendError(400, 'The decoder prompt (length 9000) is longer than the maximum model length of 8192.'),
    ],
    [
      'vLLM, no room for the answer',
      sendError(
        400,
        "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 8192 tokens",
      ),
    ],
    [
      'vLLM, older form',
      sendJson({ object: 'error', message: 'maximum context length is 8192', code: 400 }, 400),
    ],
    [
      'SGLang',
      sendError(400, "The input (9000 tokens) is longer than the model's context length (8192 tokens)."),
    ],
    ['OpenAI', sendError(400, 'Your input is large.', { code: 'context_length_exceeded' })],
    ['plain text', sendText('prompt is too long', 413)],
  ])('%s', async (_, handler) => {
    await using endpoint = await startEndpoint(handler);
    const reply = await ask(endpoint, {}, long);
    expect(reply).toMatchObject({ context_overflow: true });
    expect(endpoint.requests).toHaveLength(1);
  });
  test('an answer larger than the context is asked for once more, with what there is', async () => {
    const handler = sendError(
      400,
      "'max_tokens' is too large: 99999. This model's maximum context length is 8192",
    );
    await using endpoint = await startEndpoint(handler, sendJson(completion('ok')));
    const reply = await answered(ask(endpoint, { sampling: { max_tokens: 99_999 } }));
    expect(endpoint.requests.map(({ body }) => body.max_tokens)).toEqual([99_999, undefined]);
    expect(reply.asked).toEqual({ max_tokens: null });
  });
});

test('a key that the endpoint does not know is named, with what to do', async () => {
  await using endpoint = await startEndpoint(sendError(400, 'Unrecognized request argument supplied: top_k'));
  const failure = await failureOf(ask(endpoint, { require_tokens: true }));
  expect(failure).toMatchObject({ failureClass: 'policy_bad_request' });
  expect(failure.message).toMatch(/does not take "top_k": training \(--require-tokens\) always sends it/);
  expect(endpoint.requests).toHaveLength(1);
});

describe('faults that no retry mends', () => {
  test.each([
    [401, 'policy_unauthorized'],
    [403, 'policy_unauthorized'],
    [404, 'policy_model_unknown'],
    [400, 'policy_bad_request'],
    [422, 'policy_bad_request'],
    [405, 'policy_bad_request'],
  ])('HTTP %i is %s, asked once', async (status, failureClass) => {
    await using endpoint = await startEndpoint(sendError(status, `no: bad key ${KEY}`));
    const failure = await failureOf(open(endpoint.url, {}, keyFor(endpoint.url)).complete(START, [], never));
    expect(failure).toMatchObject({ failureClass });
    expect(failure.message).toContain(endpoint.url);
    expect(failure.message).toContain(`HTTP ${status}`);
    expect(failure.message).not.toContain(KEY);
    expect(failure.message.length).toBeLessThanOrEqual(400);
    expect(endpoint.requests).toHaveLength(1);
  });
  test('silence is policy_silent and is not asked again', async () => {
    await using endpoint = await startEndpoint(() => undefined);
    const failure = await failureOf(ask(endpoint, { request_timeout: 0.2 }));
    expect(failure).toMatchObject({ failureClass: 'policy_silent' });
    expect(endpoint.requests).toHaveLength(1);
    expect((await endpoint.requests[0]?.closed) ?? 0).toBeLessThan((endpoint.requests[0]?.at ?? 0) + 500);
  });
  test('a body that never ends is policy_silent too', async () => {
    await using endpoint = await startEndpoint((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write('{"choices": [');
    });
    const failure = await failureOf(ask(endpoint, { request_timeout: 0.2 }));
    expect(failure).toMatchObject({ failureClass: 'policy_silent' });
    expect(endpoint.requests).toHaveLength(1);
  });
});

describe('faults that may pass', () => {
  const reset: Handler = (_, response) => response.destroy();
  const cut: Handler = (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '500' });
    response.write('{"choices": [');
    setTimeout(() => response.destroy(), 20);
  };
  const ok = sendJson(completion('ok'));

  test.each<[string, Handler]>([
    ['a reset before the head', reset],
    ['a body cut in the middle', cut],
    ['HTTP 500', sendError(500, 'x')],
    ['HTTP 502', sendText('<html>bad gateway</html>', 502)],
    ['HTTP 503', sendError(503, 'x')],
    ['HTTP 429', sendError(429, 'x')],
    ['something that is not JSON', sendText('<html>')],
    ['an answer without choices', sendJson({ choices: [] })],
    ['an answer of wrong types', sendJson({ choices: [{ message: { content: 5 } }] })],
    [
      'an engine that broke off',
      sendJson(completion('x', { choices: [{ message: { content: 'x' }, finish_reason: 'abort' }] })),
    ],
  ])('%s, once: asked again, and said so', async (_, handler) => {
    await using endpoint = await startEndpoint(handler, ok);
    warnings.length = 0;
    const reply = await answered(ask(endpoint));
    expect(reply.message.content).toBe('ok');
    expect(endpoint.requests).toHaveLength(2);
    expect(warnings).toHaveLength(1);
  });

  test.each<[string, Handler, string, number]>([
    ['HTTP 500', sendError(500, 'x'), 'policy_server_error', 3],
    ['HTTP 504', sendError(504, 'x'), 'policy_server_error', 3],
    ['garbage', sendText('<html>'), 'policy_garbage', 3],
    ['bodies cut', cut, 'policy_unreachable', 3],
  ])('%s, always: a few times, then a failure', async (_, handler, failureClass, count) => {
    await using endpoint = await startEndpoint(handler);
    expect(await failureOf(ask(endpoint))).toMatchObject({ failureClass });
    expect(endpoint.requests).toHaveLength(count);
  });

  test('refused: tried again as long as patience lasts', async () => {
    const endpoint = await startEndpoint(ok);
    await endpoint[Symbol.asyncDispose]();
    const started = performance.now();
    const failure = await failureOf(ask(endpoint, { patience: 0.6 }));
    expect(failure).toMatchObject({ failureClass: 'policy_unreachable' });
    expect(failure.message).toMatch(/ECONNREFUSED/);
    expect(performance.now() - started).toBeGreaterThan(550);
    expect(performance.now() - started).toBeLessThan(2000);
  });
  test('503 for ever: until patience is over', async () => {
    await using endpoint = await startEndpoint(sendError(503, 'busy'));
    const failure = await failureOf(ask(endpoint, { patience: 0.8 }));
    expect(failure).toMatchObject({ failureClass: 'policy_server_error' });
    expect(endpoint.requests.length).toBeGreaterThan(1);
  });
  test('no patience, no second request', async () => {
    await using endpoint = await startEndpoint(sendError(503, 'busy'));
    await failureOf(ask(endpoint, { patience: 0 }));
    expect(endpoint.requests).toHaveLength(1);
  });
  test('Retry-After is kept to', async () => {
    await using endpoint = await startEndpoint(sendError(503, 'x', {}, { 'retry-after': '1' }), ok);
    await answered(ask(endpoint));
    const [first, second] = endpoint.requests;
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(990);
  });
  test('a Retry-After beyond patience is a failure at once', async () => {
    await using endpoint = await startEndpoint(sendError(429, 'x', {}, { 'retry-after': '100' }));
    const started = performance.now();
    expect(await failureOf(ask(endpoint))).toMatchObject({ failureClass: 'policy_server_error' });
    expect(performance.now() - started).toBeLessThan(500);
  });
});

describe('aborting', () => {
  const cases: [string, Handler][] = [
    ['waits for the head', () => undefined],
    [
      'waits for the body',
      (_, response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.write('{');
      },
    ],
  ];
  test.each(cases)('while it %s closes the connection within 0.2 s', async (_, handler) => {
    await using endpoint = await startEndpoint(handler);
    const controller = new AbortController();
    const reason = new Error('cancelled');
    const asked = open(endpoint.url).complete(START, [], controller.signal);
    await expect.poll(() => endpoint.requests.length).toBe(1);
    const aborted = performance.now();
    setTimeout(() => controller.abort(reason), 20);
    await expect(asked).rejects.toBe(reason);
    expect(((await endpoint.requests[0]?.closed) ?? Number.POSITIVE_INFINITY) - aborted).toBeLessThan(220);
  });
  test('while it waits to try again ends at once', async () => {
    await using endpoint = await startEndpoint(sendError(503, 'x', {}, { 'retry-after': '2' }));
    const controller = new AbortController();
    const asked = open(endpoint.url).complete(START, [], controller.signal);
    setTimeout(() => controller.abort(new Error('cancelled')), 100);
    const started = performance.now();
    await expect(asked).rejects.toThrow('cancelled');
    expect(performance.now() - started).toBeLessThan(500);
  });
});
