/** Answers that another endpoint completes, and answers that take long. */
import { PolicyConfig } from '@swefarm/shared';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Endpoints } from '../../src/agent/policy/endpoints.ts';
import { completion, type Handler, sendJson, sendText, startEndpoint } from './endpoint.ts';
import { never, policyAt, START } from './scripted.ts';
import { begin, events, expectSame, POLL, server, tokenEndpoint, undisturbed } from './streaming.ts';

vi.setConfig({ testTimeout: 180_000 });

describe('another endpoint takes over within the turn', () => {
  test('a replica killed during an answer: one attempt, no token twice', async () => {
    const plain = await undisturbed();
    const dying = await server({ faults: [{ kind: 'slow_body', ms: 60_000, turn: 1 }] });
    const other = await server();
    const playing = begin({ urls: [dying.url, other.url], loads: new Map([[other.url, 5]]) });
    await expect.poll(() => dying.stats().requests, POLL).toBe(2);
    // The replica is killed only after a part of the answer has arrived.
    await new Promise((resolve) => setTimeout(resolve, 4_000));
    await dying[Symbol.asyncDispose]();
    const end = await playing;
    expectSame(end, plain);
    const bound = end.trajectory.turns.map(({ endpoint }) => endpoint);
    expect(bound).toEqual([dying.url, other.url, other.url]);
    expect(end.trajectory.turns.map(({ spans }) => spans?.length)).toEqual([1, 2, 1]);
    expect(other.stats().requests).toBe(2);
  });
  test.each(['echo', 'text', 'token-in'] as const)('in mode %s after the second fault', async (mode) => {
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
  test('after silence; without another endpoint in use it stays', async () => {
    const quiet: Handler = () => undefined;
    const silent = await startEndpoint(quiet);
    onTestFinished(() => silent[Symbol.asyncDispose]());
    const good = await startEndpoint(sendJson(completion('ok')));
    onTestFinished(() => good[Symbol.asyncDispose]());
    const open = (urls: string[], loads: [string, number][] = []) => {
      const endpoints = new Endpoints();
      endpoints.setOthers(new Map(loads));
      const config = PolicyConfig.parse({ urls, model: 'm', request_timeout: 2, patience: 60 });
      return policyAt(config, { rolloutId: 'r.i.0', endpoints });
    };
    using moving = open([silent.url, good.url], [[good.url, 5]]);
    expect(await moving.complete(START, [], never)).toMatchObject({ endpoint: good.url });
    using alone = open([silent.url]);
    await expect(alone.complete(START, [], never)).rejects.toMatchObject({ failureClass: 'policy_silent' });
  });
  test('an unreachable endpoint is asked again if no other is left', async () => {
    const refused: Handler = (_, response) => response.destroy();
    const back = await startEndpoint(refused, refused, sendJson(completion('ok')));
    const gone = await startEndpoint(refused);
    for (const each of [back, gone]) onTestFinished(() => each[Symbol.asyncDispose]());
    const endpoints = new Endpoints();
    endpoints.setOthers(new Map([[gone.url, 5]]));
    const config = PolicyConfig.parse({ urls: [back.url, gone.url], model: 'm', patience: 60 });
    using policy = policyAt(config, { rolloutId: 'r.i.0', endpoints });
    expect(await policy.complete(START, [], never)).toMatchObject({ endpoint: back.url });
    expect(gone.requests.length).toBeGreaterThan(1);
  });
  test('if all fail, each is asked until patience is over', async () => {
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

test('2,000 seconds of thinking without a long silence are an answer', async () => {
  const clock = manualTime();
  const thinking: Handler = (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const list = events(
      Array.from({ length: 100 }, (_, at) => at + 8),
      'stop',
    );
    // 20 s of the test's clock before each token, once the client has received the previous one.
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
  // The default request_timeout of 600 s limits only the silence between two chunks.
  const config = PolicyConfig.parse({
    ...{ urls: [url], model: 'm', token_mode: 'token-in', version: 'v' },
  });
  using policy = policyAt(config, { rolloutId: 'r.i.0', time: clock });
  const reply = await policy.complete(START, [], never);
  expect(reply).toMatchObject({ seconds: 2000, spans: [{ tokens: 100 }] });
  expect(policy.throughput()).toEqual({ tokens: 100, seconds: 2000 });
});

/** A clock that the test advances; it counts its reads. */
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
