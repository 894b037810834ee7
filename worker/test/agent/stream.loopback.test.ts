/** Streamed answers, and what becomes of one that breaks off: mode token-in goes on from the ids that came, here or elsewhere. */
import {
  AgentConfig,
  closePolicyConnections,
  cumulative,
  type Message,
  PolicyConfig,
  RolloutFailure,
} from '@swefarm/shared';
import { type ScriptedPolicyOptions, startScriptedPolicy } from '@swefarm/testkit';
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { AgentEnd } from '../../src/agent/agent.ts';
import { runMiniAgent } from '../../src/agent/loop.ts';
import { openEndpoints } from '../../src/agent/policy/endpoints.ts';
import { completion, type Handler, sendError, sendJson, sendText, startEndpoint } from './endpoint.ts';
import { depsOf, echoShell, policyAt, scriptedTask } from './scripted.ts';

afterAll(closePolicyConnections);
vi.setConfig({ testTimeout: 60_000 });
const POLL = { timeout: 30_000, interval: 10 };

const SAID = [
  { think: 'What ïs there? '.repeat(20), command: 'echo one' },
  { think: 'Mürbe 😀 '.repeat(30), command: 'echo  "ünïcode  \\u00e9 😀"' },
  { submit: true as const },
];
const script = { conversations: [{ variants: [SAID] }] };

async function server(options: Partial<ScriptedPolicyOptions> = {}) {
  const started = await startScriptedPolicy({ script, ...options });
  onTestFinished(() => started[Symbol.asyncDispose]());
  return started;
}

type Opening = { urls: string[]; config?: object; loads?: Map<string, number>; agent?: object };

function begin({ urls, config = {}, loads = new Map(), agent = {} }: Opening): Promise<AgentEnd> {
  const endpoints = openEndpoints();
  endpoints.setOthers(loads);
  const parsed = PolicyConfig.parse({
    ...{ urls, model: 'm', token_mode: 'token-in', require_tokens: true, patience: 20 },
    ...config,
  });
  const policy = policyAt(parsed, 'run.a__b-1.0', { endpoints });
  onTestFinished(() => policy[Symbol.dispose]());
  return runMiniAgent(scriptedTask(AgentConfig.parse(agent)), depsOf(policy, echoShell()));
}

/** All that a trainer gets of the tokens. */
const tokensOf = ({ trajectory }: AgentEnd) => [...cumulative(trajectory.turns.map(({ tokens }) => tokens))];
const sums = ({ trajectory }: AgentEnd): number[] =>
  trajectory.turns.map(({ spans }) => (spans ?? []).reduce((sum, { tokens }) => sum + tokens, 0));

/** What an answer was that nothing befell: the script says the same tokens whoever is asked, and whenever. */
const undisturbed = async () => await begin({ urls: [(await server()).url] });

function expectSame(end: AgentEnd, plain: AgentEnd): void {
  expect(end.exit_status).toBe('submitted');
  expect(end.trajectory.contiguous).toBe(true);
  expect(tokensOf(end)).toEqual(tokensOf(plain));
  expect(end.trajectory.messages).toEqual(plain.trajectory.messages);
  expect(sums(end)).toEqual(tokensOf(end).map(({ generation }) => generation.length));
}

test('streamed or not, an answer is the same', async () => {
  const whole = await begin({ urls: [(await server()).url], config: { stream: 'off' } });
  expectSame(await undisturbed(), whole);
});

describe('an answer that is broken off goes on from what came', () => {
  test.each([
    ['the engine aborts it', 'aborted'],
    ['the connection is cut', 'cut'],
  ] as const)('%s', async (_, kind) => {
    const plain = await undisturbed();
    const broken = await server({ faults: [{ kind, turn: 1, times: 3 }] });
    const end = await begin({ urls: [broken.url] });
    expectSame(end, plain);
    // Each of the three brought half of what was left, so that none of them is a reason to give up.
    expect(end.trajectory.turns.map(({ spans }) => spans?.length)).toEqual([1, 4, 1]);
    expect(broken.stats().requests).toBe(6);
  });
  test.each(['cut', 'aborted'] as const)('%s unstreamed, it is asked as a whole', async (kind) => {
    const plain = await undisturbed();
    const broken = await server({ faults: [{ kind, turn: 1, times: 1 }] });
    const end = await begin({ urls: [broken.url], config: { stream: 'off' } });
    expectSame(end, plain);
    expect(end.trajectory.turns.map(({ spans }) => spans?.length)).toEqual([1, 1, 1]);
  });
  test('an engine that aborts for ever comes to an end', async () => {
    const broken = await server({ faults: [{ kind: 'aborted', turn: 0 }] });
    await expect(begin({ urls: [broken.url] })).rejects.toMatchObject({
      failureClass: 'policy_server_error',
    });
    expect(broken.stats().requests).toBeLessThan(40);
  });
});

/** One text completion as a stream of one token a chunk; `spoil` changes the list of events. */
const events = (ids: number[], finish: string | null, prompt?: number[]): string[] =>
  ids.map(
    (id, at) =>
      `data: ${JSON.stringify({
        choices: [
          {
            index: 0,
            text: `t${id} `,
            token_ids: [id],
            logprobs: { token_logprobs: [-id / 8] },
            finish_reason: at === ids.length - 1 ? finish : null,
            ...(at === 0 && prompt ? { prompt_token_ids: prompt } : {}),
          },
        ],
      })}\n\n`,
  );
const streamed =
  (list: string[], then: 'end' | 'cut' | 'nothing' = 'end'): Handler =>
  (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const each of list) response.write(each);
    if (then === 'end') response.end('data: [DONE]\n\n');
    if (then === 'cut') setTimeout(() => response.destroy(), 50);
  };
/** The same in chat, as servers send it that tell no ids. */
const chatEvents = (words: string[], finish: string | null): string[] =>
  words.map(
    (content, at) =>
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: at === words.length - 1 ? finish : null }] })}\n\n`,
  );
/** So long between two events, as a model that thinks. */
const slowly =
  (list: string[], gapMs: number): Handler =>
  (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const next = (): void => {
      const one = list.shift();
      if (one === undefined) return void response.destroy();
      response.write(one);
      setTimeout(next, gapMs);
    };
    next();
  };
/** Renders every prompt alike; completions are answered in order, by the last one from then on. */
async function tokenEndpoint(...handlers: Handler[]) {
  let asked = 0;
  const endpoint = await startEndpoint((request, response, index) => {
    if (request.path.endsWith('/detokenize')) sendJson({ prompt: 'x' })(request, response, index);
    else if (request.path.endsWith('/tokenize')) sendJson({ tokens: [1, 2, 3] })(request, response, index);
    else if (request.path.endsWith('/models')) sendJson({ data: [] })(request, response, index);
    else handlers[Math.min(asked++, handlers.length - 1)]?.(request, response, index);
  });
  onTestFinished(() => endpoint[Symbol.asyncDispose]());
  const bodies = () =>
    endpoint.requests
      .filter(({ path }) => path.endsWith('/completions'))
      .map(({ body }) => body as Record<string, unknown>);
  return { url: endpoint.url, bodies };
}
const START: Message[] = [{ role: 'user', content: 'hi' }];
const never = new AbortController().signal;

/** One turn against answers that the test writes. */
async function oneTurn(config: object, ...handlers: Handler[]) {
  const { url, bodies } = await tokenEndpoint(...handlers);
  const parsed = {
    ...{ urls: [url], model: 'm', token_mode: 'token-in', version: 'v', patience: 3 },
    ...config,
  };
  const policy = policyAt(PolicyConfig.parse(parsed));
  onTestFinished(() => policy[Symbol.dispose]());
  const asked = policy.complete(START, [], never);
  return { asked, bodies };
}

test('what is left is asked for with as many tokens less, and no id comes twice', async () => {
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

test('an answer that was broken off at its last token is whole', async () => {
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
])('a stream that %s leaves nothing behind', async (_, bad) => {
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
  'in mode %s patience runs while the endpoint fails, and not while it answers',
  async (mode, first, long, last, said) => {
    // The second request alone takes longer than the patience.
    const { asked, bodies } = await oneTurn(
      { token_mode: mode, patience: 0.5 },
      streamed(first),
      slowly([...long], 600 / long.length),
      streamed(last),
    );
    expect(await asked).toMatchObject({ message: { content: said } });
    expect(bodies()).toHaveLength(3);
  },
);

describe.each([
  ['token-in', events([8, 9], 'stop', [1, 2, 3]), 't8 t9 '],
  ['text', chatEvents(['t8 ', 't9 '], 'stop'), 't8 t9 '],
])('in mode %s an answer whose end was told is whole', (mode, told, said) => {
  const DONE = 'data: [DONE]\n\n';
  test.each<[string, Handler]>([
    ['the connection is cut behind it', streamed(told, 'cut')],
    ['the connection is cut behind [DONE]', streamed([...told, DONE], 'cut')],
    ['the connection stays open behind [DONE]', streamed([...told, DONE], 'nothing')],
    ['nothing more comes', streamed(told, 'nothing')],
  ])('%s', async (what, handler) => {
    const silent = what === 'nothing more comes';
    const { asked, bodies } = await oneTurn(
      { token_mode: mode, request_timeout: silent ? 3 : 20 },
      handler,
      sendError(400, 'asked twice'),
    );
    const reply = await asked;
    expect(reply).toMatchObject({ message: { content: said }, finish_reason: 'stop' });
    expect(reply.seconds).toBeLessThan(15);
    expect(bodies()).toHaveLength(1);
  });
});

test('a stream that tells no tokens is counted by its chunks, and whole answers are asked for from then on', async () => {
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

test('with texts that end an answer nothing is kept: the server holds back text of ids that it told', async () => {
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

test('an endpoint that goes on from other ids than it was given is found out', async () => {
  const { asked } = await oneTurn(
    {},
    streamed(events([8, 9], 'abort', [1, 2, 3])),
    streamed(events([10], 'stop', [1, 2, 3, 8, 7])),
  );
  await expect(asked).rejects.toMatchObject({ failureClass: 'policy_tokens' });
});

test('a server that refuses streams is asked without one, from then on', async () => {
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

test('silence between two chunks is policy_silent; what came before it is none', async () => {
  const { asked, bodies } = await oneTurn(
    { request_timeout: 0.3 },
    streamed(events([8, 9], null, [1, 2, 3]), 'nothing'),
  );
  const failure = await asked.catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(RolloutFailure);
  expect(String(failure)).toContain('no more of the answer within 0.3 s');
  expect(failure).toMatchObject({ failureClass: 'policy_silent' });
  expect(bodies()).toHaveLength(1);
});

describe('another endpoint takes over within the turn', () => {
  test('a replica that is killed in the middle of an answer: one attempt, no token twice', async () => {
    const plain = await undisturbed();
    const dying = await server({ faults: [{ kind: 'slow_body', ms: 60_000, turn: 1 }] });
    const other = await server();
    const playing = begin({ urls: [dying.url, other.url], loads: new Map([[other.url, 5]]) });
    await expect.poll(() => dying.stats().requests, POLL).toBe(2);
    // Not before something of the answer is there.
    await new Promise((resolve) => setTimeout(resolve, 1500));
    await dying[Symbol.asyncDispose]();
    const end = await playing;
    expectSame(end, plain);
    const bound = end.trajectory.turns.map(({ endpoint }) => endpoint);
    expect(bound).toEqual([dying.url, other.url, other.url]);
    expect(end.trajectory.turns.map(({ spans }) => spans?.length)).toEqual([1, 2, 1]);
    expect(other.stats().requests).toBe(2);
  });
  test.each(['echo', 'text', 'token-in'] as const)('in mode %s, after the second fault', async (mode) => {
    const [bad, good] = [await server({ faults: [{ kind: 'server_error', turn: 1 }] }), await server()];
    const end = await begin({
      urls: [bad.url, good.url],
      loads: new Map([[good.url, 5]]),
      config: { token_mode: mode, require_tokens: mode !== 'text' },
    });
    expect(end.exit_status).toBe('submitted');
    expect(end.trajectory.turns.map(({ endpoint }) => endpoint)).toEqual([bad.url, good.url, good.url]);
    expect(bad.stats().requests).toBe(3);
  });
  test('silence is reason enough; and with none in use it stays where it is', async () => {
    const quiet: Handler = () => undefined;
    const silent = await startEndpoint(quiet);
    onTestFinished(() => silent[Symbol.asyncDispose]());
    const good = await startEndpoint(sendJson(completion('ok')));
    onTestFinished(() => good[Symbol.asyncDispose]());
    const open = (urls: string[], loads: [string, number][] = []) => {
      const endpoints = openEndpoints();
      endpoints.setOthers(new Map(loads));
      const config = PolicyConfig.parse({ urls, model: 'm', request_timeout: 0.3, patience: 5 });
      return policyAt(config, 'r.i.0', { endpoints });
    };
    using moving = open([silent.url, good.url], [[good.url, 5]]);
    expect(await moving.complete(START, [], never)).toMatchObject({ endpoint: good.url });
    using alone = open([silent.url]);
    await expect(alone.complete(START, [], never)).rejects.toMatchObject({ failureClass: 'policy_silent' });
  });
  test('all of them fail: each is asked, and patience ends it', async () => {
    const bad = await Promise.all([1, 2, 3].map(() => startEndpoint(sendText('<html>', 500))));
    for (const each of bad) onTestFinished(() => each[Symbol.asyncDispose]());
    const urls = bad.map(({ url }) => url);
    using policy = policyAt(PolicyConfig.parse({ urls, model: 'm', patience: 20 }));
    await expect(policy.complete(START, [], never)).rejects.toMatchObject({
      failureClass: 'policy_server_error',
    });
    expect(Math.min(...bad.map(({ requests }) => requests.length))).toBeGreaterThan(0);
    expect(bad.reduce((sum, { requests }) => sum + requests.length, 0)).toBeLessThan(12);
  });
});

test('2,000 seconds of thinking, of which none is silent for long, are an answer', async () => {
  const clock = manualTime();
  const thinking: Handler = (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const list = events(
      Array.from({ length: 100 }, (_, at) => at + 8),
      'stop',
    );
    // 20 s of the test's clock before each token, as soon as the client has heard the one before.
    const next = async (): Promise<void> => {
      const one = list.shift();
      if (one === undefined) return void response.end('data: [DONE]\n\n');
      const looks = clock.looks();
      clock.advance(20_000);
      response.write(one);
      await expect.poll(() => clock.looks(), POLL).toBeGreaterThan(looks);
      await next();
    };
    void next();
  };
  const { url } = await tokenEndpoint(thinking);
  // 600 s of patience with one answer, and an hour of the agent's time: the defaults.
  const config = PolicyConfig.parse({
    ...{ urls: [url], model: 'm', token_mode: 'token-in', version: 'v' },
  });
  using policy = policyAt(config, 'r.i.0', { time: clock });
  const reply = await policy.complete(START, [], never);
  expect(reply).toMatchObject({ seconds: 2000, spans: [{ tokens: 100 }] });
  expect(policy.throughput()).toEqual({ tokens: 100, seconds: 2000 });
});

/** A clock that stands still until it is told; it counts how often it was looked at. */
function manualTime() {
  let now = 0;
  let looks = 0;
  const timers = new Set<{ at: number; then: () => void }>();
  return {
    now() {
      looks++;
      return now;
    },
    looks: () => looks,
    after(ms: number, then: () => void) {
      const timer = { at: now + ms, then };
      timers.add(timer);
      return { [Symbol.dispose]: () => void timers.delete(timer) };
    },
    advance(ms: number) {
      now += ms;
      for (const timer of [...timers]) {
        if (timer.at > now) continue;
        timers.delete(timer);
        timer.then();
      }
    },
  };
}
