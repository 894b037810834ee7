import { RolloutFailure } from '@swefarm/shared';
import { describe, expect, test } from 'vitest';
import { createRecorderServer } from '../src/index.ts';
import { system, user } from './agentrequest.ts';
import { openEndpoint } from './endpoint.ts';
import { card, KEY, recorderOptions } from './options.ts';
import { createScriptedPolicy, runs, type Scripted, says } from './scriptedpolicy.ts';

const HELLO = [system('You fix code.'), user('Hello.')];
const chatOf = (...texts: string[]) => texts.map((text) => user(text));

describe('dialects', () => {
  const bodies = {
    '/chat/completions': { messages: [{ role: 'user', content: 'Hello.' }] },
    '/responses': { input: 'Hello.' },
    '/messages': { max_tokens: 100, messages: [{ role: 'user', content: 'Hello.' }] },
  };
  test.each(Object.entries(bodies))(
    '%s is answered whole and as a stream, with and without /v1',
    async (path, body) => {
      const policy = createScriptedPolicy(() => says('Good morning.'));
      await using endpoint = await openEndpoint(recorderOptions(policy));
      const whole = await endpoint.send(`/v1${path}?beta=true`, { model: 'm', ...body });
      expect(whole).toMatchObject({ status: 200, headers: { 'content-type': 'application/json' } });
      expect(JSON.stringify(whole.json())).toContain('Good morning.');
      const stream = await endpoint.send(path, { model: 'm', stream: true, ...body });
      expect(stream.headers['content-type']).toMatch(/^text\/event-stream/);
      expect(stream.text).toContain('Good morning.');
      expect(policy.samples.map(({ maxTokens }) => maxTokens)).toEqual(
        Array(2).fill(path === '/messages' ? 100 : null),
      );
    },
  );

  test('models and token counts are answered, and everything else is refused and counted', async () => {
    const policy = createScriptedPolicy(() => says('x'));
    await using endpoint = await openEndpoint(recorderOptions(policy, { countTokens: async () => 42 }));
    expect((await endpoint.send('/v1/models')).json().data).toMatchObject([{ id: 'toy-model' }]);
    expect((await endpoint.send('/models/any')).json().id).toBe('any');
    const count = { messages: [{ role: 'user', content: 'x' }], model: 'm' };
    expect((await endpoint.send('/v1/messages/count_tokens', count)).json()).toEqual({ input_tokens: 42 });
    for (let index = 0; index < 20; index++) await endpoint.send(`/telemetry/${index}`, {});
    expect((await endpoint.send('/v1/chat/completions')).status).toBe(404);
    const { unknown_paths: paths = {}, refused, requests } = endpoint.recorder.facts();
    expect(Object.keys(paths)).toHaveLength(10);
    expect(paths).toMatchObject({ 'POST /telemetry/0': 1, '(others)': 12 });
    expect({ refused, requests }).toEqual({ refused: 21, requests: 0 });
    expect(policy.samples).toEqual([]);
  });
});

test('fields that the policy does not receive are counted by name', async () => {
  const policy = createScriptedPolicy(() => says('x'));
  await using endpoint = await openEndpoint(recorderOptions(policy));
  for (let index = 0; index < 20; index++)
    await endpoint.chat(HELLO, {
      response_format: {},
      tools: [{ type: `search_${index}`.padEnd(200, 'x') }],
    });
  const { dropped = {} } = endpoint.recorder.facts();
  expect(dropped).toMatchObject({ response_format: 20, '(others)': 12 });
  expect(Object.keys(dropped).map((name) => name.length <= 100)).toEqual(Array(10).fill(true));
});

describe('refused requests', () => {
  test.each([
    ['authorization', `Bearer ${KEY}`, 200],
    ['authorization', `bearer ${KEY}`, 200],
    ['x-api-key', KEY, 200],
    ['x-goog-api-key', KEY, 200],
    ['authorization', 'Bearer another', 401],
    ['x-api-key', '', 401],
  ])('key in %s: %s', async (header, value, status) => {
    const policy = createScriptedPolicy(() => says('x'));
    await using endpoint = await openEndpoint(recorderOptions(policy));
    const reply = await endpoint.chat(HELLO, {}, { headers: { authorization: '', [header]: value } });
    expect(reply.status).toBe(status);
    expect(policy.samples).toHaveLength(status === 200 ? 1 : 0);
  });

  test.each<[string, unknown, Record<string, string>, number]>([
    ['a websocket', undefined, { upgrade: 'websocket', connection: 'Upgrade' }, 426],
    ['a compressed body', {}, { 'content-encoding': 'gzip' }, 415],
    ['a body that is not JSON', '{"messages":', {}, 400],
    ['a body of 65 MiB', Buffer.alloc(65 * 1024 ** 2, 32), {}, 400],
    ['a body of millions of values', `[${'{},'.repeat(1e6)}{}]`, {}, 400],
    ['a body nested 100,000 levels deep', '['.repeat(1e5) + ']'.repeat(1e5), {}, 400],
    ['a request without messages', { model: 'm' }, {}, 400],
  ])('%s', async (_, body, headers, status) => {
    const policy = createScriptedPolicy(() => says('x'));
    await using endpoint = await openEndpoint(recorderOptions(policy));
    const method = body === undefined ? 'GET' : 'POST';
    const reply = await endpoint.send('/v1/chat/completions', body, { headers, method });
    expect(reply.status).toBe(status);
    expect(policy.samples).toEqual([]);
    expect((await endpoint.chat(HELLO)).status).toBe(200);
  });

  test('a flood of 10,000 requests with another key asks the policy nothing', async () => {
    const policy = createScriptedPolicy(() => says('x'));
    await using endpoint = await openEndpoint(recorderOptions(policy));
    const flood = async () => {
      for (let index = 0; index < 250; index++)
        await endpoint.chat(HELLO, {}, { headers: { authorization: 'Bearer another' } }).catch(() => null);
    };
    await Promise.all(Array.from({ length: 40 }, flood));
    expect((await endpoint.chat(HELLO)).status).toBe(200);
    expect(policy.samples).toHaveLength(1);
    expect(endpoint.recorder.facts().refused).toBe(10_000);
  });

  test('connections with half a request do not block others', async () => {
    const policy = createScriptedPolicy(() => says('x'));
    await using endpoint = await openEndpoint(recorderOptions(policy));
    const half = Array.from({ length: 100 }, () =>
      endpoint.send('/v1/chat/completions', '{', { headers: { 'content-length': '1000' } }).catch(() => null),
    );
    expect((await endpoint.chat(HELLO)).status).toBe(200);
    endpoint.server.closeAllConnections();
    await Promise.all(half);
  });

  test('the server bounds connections, and the time of heads and bodies', () => {
    const server = createRecorderServer({ handle: () => undefined });
    expect(server).toMatchObject({ maxConnections: 128, headersTimeout: 20_000, requestTimeout: 120_000 });
  });
});

describe('many requests at once', () => {
  test('eight are sampled at once, the others wait, and beyond 72 they are refused', async () => {
    const gate = Promise.withResolvers<void>();
    const policy = createScriptedPolicy(async () => {
      await gate.promise;
      return says('x');
    });
    await using endpoint = await openEndpoint(recorderOptions(policy));
    const replies = Array.from({ length: 80 }, (_, index) => endpoint.chat(chatOf(`request ${index}`)));
    await expect.poll(() => endpoint.recorder.facts()).toMatchObject({ requests: 80, refused: 8 });
    gate.resolve();
    const statuses = (await Promise.all(replies)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(72);
    expect(policy.state.mostInFlight).toBe(8);
  });

  test('two equal requests in flight are sampled once', async () => {
    const gate = Promise.withResolvers<Scripted>();
    const policy = createScriptedPolicy(() => gate.promise);
    await using endpoint = await openEndpoint(recorderOptions(policy));
    const both = [endpoint.chat(HELLO), endpoint.chat(HELLO, { stream: true })];
    await expect.poll(() => endpoint.recorder.facts().requests).toBe(2);
    gate.resolve(says('the same'));
    for (const { text } of await Promise.all(both)) expect(text).toContain('the same');
    expect(policy.samples).toHaveLength(1);
    expect(endpoint.recorder.facts().repeated).toBe(1);
  });

  test('a client that disconnects and repeats its request gets the sampled answer', async () => {
    const gate = Promise.withResolvers<Scripted>();
    const policy = createScriptedPolicy(() => gate.promise);
    await using endpoint = await openEndpoint(recorderOptions(policy));
    const leaving = new AbortController();
    const left = endpoint.chat(HELLO, { stream: true }, { signal: leaving.signal }).catch(() => null);
    await expect.poll(() => policy.state.inFlight).toBe(1);
    leaving.abort();
    await left;
    gate.resolve(says('kept'));
    await endpoint.recorder.idle();
    expect(endpoint.recorder.trajectory().turns[0]?.request?.delivered).toBe(false);
    expect((await endpoint.chat(HELLO)).text).toContain('kept');
    expect(policy.samples).toHaveLength(1);
    await expect
      .poll(() => endpoint.recorder.trajectory().turns[0]?.request)
      .toMatchObject({ delivered: true, repeated: 1 });
    await endpoint.chat(HELLO);
    expect(policy.samples).toHaveLength(2);
  });

  test('a stream sends its head and keep-alive events while the policy samples', async () => {
    const gate = Promise.withResolvers<Scripted>();
    const policy = createScriptedPolicy(() => gate.promise);
    await using endpoint = await openEndpoint(
      recorderOptions(policy, { silenceMs: { head: 10, alive: 10 } }),
    );
    let seen = 0;
    const body = { model: 'm', stream: true, max_tokens: 9, messages: [{ role: 'user', content: 'x' }] };
    const reply = endpoint.send('/v1/messages', body, { onText: () => seen++ });
    await expect.poll(() => seen).toBeGreaterThan(4);
    gate.resolve(says('late'));
    const { text } = await reply;
    expect(text.match(/event: ping/g)?.length).toBeGreaterThan(3);
    expect(text.match(/event: message_start/g)).toHaveLength(1);
    expect(text).toContain('late');
  });
});

describe('limits', () => {
  const ask = async (limits: Parameters<typeof recorderOptions>[1], answers: Scripted[], most = 10) => {
    const left = [...answers];
    const policy = createScriptedPolicy(() => left.shift() ?? says('more'));
    const endpoint = await openEndpoint(recorderOptions(policy, limits));
    await using _endpoint = endpoint;
    const statuses: number[] = [];
    for (let index = 0; index < most && statuses.at(-1) !== 403; index++)
      statuses.push((await endpoint.chat(chatOf(`request ${index}`))).status);
    const over = statuses.at(-1) === 403 ? await endpoint.recorder.over : null;
    const { limit } = endpoint.recorder.trajectory();
    return { statuses, over, limit, malformed: endpoint.recorder.malformedAnswers(), policy };
  };
  const bad: Scripted = { message: { role: 'assistant', content: '<tool_call>{"name": "bash", "argu' } };

  test.each<[string, NonNullable<Parameters<typeof recorderOptions>[1]>['limits'], string]>([
    ['turns', { turns: 2 }, 'turn_limit'],
    ['answer tokens', { answerTokens: 15 }, 'turn_limit'],
    ['cost', { cost: { most: 0.00003, price: { prompt: 0, completion: 2 } } }, 'turn_limit'],
    ['whole prompts', { wholePrompts: 2 }, 'turn_limit'],
  ])('%s end the rollout at the next request', async (_, limits, why) => {
    const { statuses, over } = await ask({ limits: limits ?? {} }, []);
    expect(statuses).toEqual([200, 200, 403]);
    expect(over).toBe(why);
  });

  test('the last answer has at most the remaining number of tokens', async () => {
    const { policy } = await ask({ limits: { answerTokens: 15 } }, []);
    expect(policy.samples.map(({ maxTokens }) => maxTokens)).toEqual([15, 4]);
  });

  test('malformed answers in a row end the rollout', async () => {
    const { statuses, ...ended } = await ask({ limits: { malformedInARow: 2 } }, [bad, says('ok'), bad, bad]);
    expect(statuses).toEqual([200, 200, 200, 200, 403]);
    expect(ended).toMatchObject({ over: 'format_limit', malformed: 3 });
  });

  test('cut answers in a row end the rollout by the token limit', async () => {
    const cut: Scripted = { message: { role: 'assistant', content: 'I' }, finish: 'length' };
    const ended = await ask({ limits: { malformedInARow: 2 } }, [cut, cut]);
    expect(ended).toMatchObject({ over: 'context_limit', limit: 'max_tokens', malformed: 0 });
  });

  test('a request above the turn limit is refused; one in flight is recorded', async () => {
    const gate = Promise.withResolvers<Scripted>();
    const policy = createScriptedPolicy(() => gate.promise);
    await using endpoint = await openEndpoint(recorderOptions(policy, { limits: { turns: 1 } }));
    const first = endpoint.chat(HELLO);
    await expect.poll(() => policy.state.inFlight).toBe(1);
    expect((await endpoint.chat(chatOf('another'))).status).toBe(403);
    gate.resolve(says('recorded'));
    expect((await first).status).toBe(200);
    expect(await endpoint.recorder.over).toBe('turn_limit');
    expect(endpoint.recorder.trajectory().turns).toHaveLength(1);
  });

  const full = { context_overflow: true as const, message: 'full', of: 'max_sequence_tokens' as const };
  test('a full context is reported to a condensing agent, and ends other rollouts', async () => {
    const told = await ask({ card: card({ overflow: 'tell' }) }, [says('x'), full, says('y')], 3);
    expect(told.statuses).toEqual([200, 400, 200]);
    const ended = await ask({ card: card({ overflow: 'end' }) }, [says('x'), full]);
    expect(ended).toMatchObject({
      statuses: [200, 403],
      over: 'context_limit',
      limit: 'max_sequence_tokens',
    });
  });

  test('a first prompt that fills the context is a failure of the policy', async () => {
    const policy = createScriptedPolicy(() => full);
    await using endpoint = await openEndpoint(recorderOptions(policy, { card: card({ overflow: 'tell' }) }));
    expect((await endpoint.chat(HELLO)).status).toBe(403);
    await expect(endpoint.recorder.over).rejects.toMatchObject({ failureClass: 'policy_context' });
  });
});

describe('the end of a rollout', () => {
  test('a failure of the policy refuses all requests in flight, begun streams too', async () => {
    const gate = Promise.withResolvers<void>();
    const policy = createScriptedPolicy(async (_, number) => {
      await gate.promise;
      return number === 2
        ? { error: new RolloutFailure('policy_server_error', 'HTTP 500') }
        : await new Promise(() => undefined);
    });
    const never = { ...policy, openLine: withAbort(policy.openLine) };
    await using endpoint = await openEndpoint(
      recorderOptions(never, { silenceMs: { head: 1, alive: 1_000 } }),
    );
    const messages = { model: 'm', max_tokens: 9, stream: true, messages: [{ role: 'user', content: 'x' }] };
    let begun = false;
    const stream = endpoint.send('/v1/messages', messages, { onText: () => (begun = true) });
    await expect.poll(() => begun).toBe(true);
    const whole = endpoint.chat(HELLO);
    await expect.poll(() => policy.state.inFlight).toBe(2);
    gate.resolve();
    expect((await whole).status).toBe(403);
    expect((await stream).text).toContain('event: error');
    await expect(endpoint.recorder.over).rejects.toMatchObject({ failureClass: 'policy_server_error' });
    await endpoint.recorder.idle();
    expect((await endpoint.chat(HELLO)).status).toBe(403);
  });

  test.each(['policy_bad_request', 'policy_template'] as const)(
    '%s of a whole prompt after the first answer is the fault of the agent',
    async (name) => {
      const refusal = new RolloutFailure(name, 'HTTP 400 no such role');
      const policy = createScriptedPolicy((_, number) =>
        number === 1 ? runs('a', 'ls') : { error: refusal },
      );
      await using endpoint = await openEndpoint(recorderOptions(policy));
      expect((await endpoint.chat(HELLO)).status).toBe(200);
      const reply = await endpoint.chat([{ role: 'tool', tool_call_id: 'none', content: 'x' }]);
      expect(reply.status).toBe(400);
      expect(reply.text).not.toMatch(/HTTP 400|role/);
    },
  );

  test('missing token ids fail the attempt, not the request of the agent', async () => {
    const failure = new RolloutFailure('policy_tokens', 'the endpoint sends no token ids');
    const policy = createScriptedPolicy((_, number) => (number === 1 ? runs('a', 'ls') : { error: failure }));
    await using endpoint = await openEndpoint(recorderOptions(policy));
    expect((await endpoint.chat(HELLO)).status).toBe(200);
    expect((await endpoint.chat(chatOf('another'))).status).toBe(403);
    await expect(endpoint.recorder.over).rejects.toMatchObject({ failureClass: 'policy_tokens' });
  });

  test('an answer without token ids fails a run that requires them', async () => {
    const policy = createScriptedPolicy(() => says('x'));
    const openLine: typeof policy.openLine = (after) => ({
      async complete(request) {
        const reply = await policy.openLine(after).complete(request);
        return policy.samples.length < 2 ? reply : { ...reply, generation_token_ids: null };
      },
    });
    await using endpoint = await openEndpoint(recorderOptions({ openLine }));
    expect((await endpoint.chat(HELLO)).status).toBe(200);
    expect((await endpoint.chat(chatOf('another'))).status).toBe(403);
    await expect(endpoint.recorder.over).rejects.toMatchObject({ failureClass: 'policy_tokens' });
  });

  test('close answers requests in flight with the refusal, and refuses all later ones', async () => {
    const policy = createScriptedPolicy(() => new Promise(() => undefined));
    await using endpoint = await openEndpoint(recorderOptions({ openLine: withAbort(policy.openLine) }));
    const inFlight = endpoint.chat(HELLO);
    await expect.poll(() => policy.state.inFlight).toBe(1);
    endpoint.recorder.close('time_limit');
    expect((await inFlight).text).toContain('the rollout is over: time_limit');
    await endpoint.recorder.idle();
    expect(await endpoint.recorder.over).toBe('time_limit');
    expect((await endpoint.chat(HELLO)).status).toBe(403);
    expect(endpoint.recorder.modelSeconds()).toBeGreaterThan(0);
  });

  test('a run that requires tokens fails loudly when nothing is trained on', async () => {
    const policy = createScriptedPolicy(() => says('x'));
    await using endpoint = await openEndpoint(
      recorderOptions(policy, { card: card({ dialects: ['messages'] }) }),
    );
    await endpoint.chat(HELLO);
    expect(endpoint.recorder.facts()).toMatchObject({ lines: 1, masked: { foreign: 1 } });
    expect(() => endpoint.recorder.requireTrained()).toThrow(
      /no token of 1 answers is trained on: .* foreign/,
    );
  });
});

/** Makes a policy that never answers end its requests when the signal is aborted. */
const withAbort =
  (open: ReturnType<typeof createScriptedPolicy>['openLine']): typeof open =>
  (after) => {
    const line = open(after);
    return {
      complete: (request) =>
        Promise.race([
          line.complete(request),
          new Promise<never>((_, reject) => {
            request.signal.addEventListener('abort', () => reject(request.signal.reason), { once: true });
          }),
        ]),
    };
  };
