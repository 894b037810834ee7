/** The policy client against a server of its own: requests, answers and aborts. */
import { PolicyConfig, turnSeed } from '@swefarm/shared';
import { describe, expect, test } from 'vitest';
import { Endpoints } from '../../src/agent/policy/endpoints.ts';
import { answered, ask, KEY, keyFor, open } from './askpolicy.ts';
import {
  completion,
  completionWithTokens,
  type Handler,
  sendError,
  sendJson,
  startEndpoint,
} from './endpoint.ts';
import { never, policyAt, START } from './scripted.ts';

describe('a request', () => {
  test('has model, messages, sampling, extra fields, rollout and attempt', async () => {
    await using endpoint = await startEndpoint(sendJson(completion('ok')));
    const bash = { name: 'bash', description: 'd', parameters: {} };
    const tools = [{ type: 'function' as const, function: bash }];
    const sampling = { temperature: 0.7, top_p: 0.9, max_tokens: 100, seed: 1 };
    const extra_body = { chat_template_kwargs: { enable_thinking: false }, top_k: 20 };
    const policy = open(endpoint.url, { sampling, extra_body }, keyFor(endpoint.url));
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
  test('has no authorization without a key, no tools without tools, no token fields in mode text', async () => {
    await using endpoint = await startEndpoint(sendJson(completion('ok')));
    await ask(endpoint);
    expect(endpoint.requests[0]?.headers.authorization).toBeUndefined();
    expect(endpoint.requests[0]?.headers['transfer-encoding']).toBeUndefined();
    const fields = ['messages', 'model', 'stream', 'stream_options'];
    expect(Object.keys(endpoint.requests[0]?.body ?? {})).toEqual(fields);
  });
  test('goes to one endpoint for an attempt, and attempts are spread', async () => {
    const config = PolicyConfig.parse({ urls: ['http://a/v1', 'http://b/v1', 'http://c/v1'], model: 'm' });
    const endpoints = new Endpoints();
    const chosen = Array.from({ length: 30 }, (_, attempt) =>
      policyAt(config, { rolloutId: 'r.i.0', attempt, endpoints }),
    );
    const bound = chosen.map(({ endpoint }) => endpoint);
    expect(chosen.map(({ endpoint }) => endpoint)).toEqual(bound);
    expect(endpoints.views().map(({ load }) => load)).toEqual([10, 10, 10]);
    for (const policy of chosen) policy[Symbol.dispose]();
    expect(endpoints.views()).toEqual([]);
  });
});

describe('an answer', () => {
  test('has a message without empty fields, finish reason, usage and version', async () => {
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
  test('has tool calls, reasoning by both names, and unknown fields', async () => {
    const called = { name: 'bash', arguments: 'Infinity' };
    const message = {
      role: 'assistant',
      content: null,
      reasoning: 'because',
      provider_field: { a: 1 },
      tool_calls: [{ id: 't1', type: 'function', index: 0, function: called }],
    };
    const choices = [{ index: 0, message, finish_reason: 'tool_calls' }];
    const body = completion(null, { choices, usage: null });
    await using endpoint = await startEndpoint(sendJson(body));
    const reply = await answered(ask(endpoint, { version: 'v0' }));
    expect(reply.message).toEqual({
      role: 'assistant',
      content: null,
      reasoning: 'because',
      reasoning_content: 'because',
      provider_field: { a: 1 },
      tool_calls: [{ id: 't1', type: 'function', function: called }],
    });
    expect(reply).toMatchObject({ usage: null, policy_version: { start: 'v0', end: 'v0' } });
  });
  test('has token ids in the form of vLLM', async () => {
    await using endpoint = await startEndpoint(sendJson(completionWithTokens('ok', [1, 2, 3], [8, 16])));
    const reply = await answered(ask(endpoint, { require_tokens: true }));
    expect(endpoint.requests[0]?.body).toMatchObject({ logprobs: true, return_token_ids: true });
    expect(reply).toMatchObject({
      prompt_token_ids: Int32Array.of(1, 2, 3),
      generation_token_ids: Int32Array.of(8, 16),
      generation_log_probs: Float32Array.of(-1, -2),
    });
  });
  test('has token ids in the form of NeMo Gym, which are removed from the message', async () => {
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
  test('the last answer is sent back with its ids, earlier ones unchanged', async () => {
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
  test.each(cases)('while the client %s, closes the connection', async (_, handler) => {
    await using endpoint = await startEndpoint(handler);
    const controller = new AbortController();
    const reason = new Error('cancelled');
    const asked = open(endpoint.url).complete(START, [], controller.signal);
    await expect.poll(() => endpoint.requests.length).toBe(1);
    setTimeout(() => controller.abort(reason), 20);
    await expect(asked).rejects.toBe(reason);
    // Resolves only when the client closes the connection: the server never answers.
    expect(await endpoint.requests[0]?.closed).toBeDefined();
  });
  test('while the client waits for a retry, ends at once', async () => {
    await using endpoint = await startEndpoint(sendError(503, 'x', {}, { 'retry-after': '60' }));
    const controller = new AbortController();
    const asked = open(endpoint.url, { patience: 600 }).complete(START, [], controller.signal);
    setTimeout(() => controller.abort(new Error('cancelled')), 100);
    const started = performance.now();
    await expect(asked).rejects.toThrow('cancelled');
    expect(performance.now() - started).toBeLessThan(30_000);
  });
});
