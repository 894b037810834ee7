/** Endpoints that refuse by 429 or 503 for longer than the patience, and headers for routers that bind a session to a server. */
import { PolicyConfig } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { answered, failureOf } from './askpolicy.ts';
import { completion, type Handler, sendError, sendJson, startEndpoint } from './endpoint.ts';
import { never, policyAt, START } from './scripted.ts';

const ok = sendJson(completion('ok', { usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 } }));

/** A policy that has an answer, at an endpoint that then refuses `times` requests. */
async function refusing(refusal: Handler, times: number, config: object = {}) {
  const endpoint = await startEndpoint(ok, ...Array.from({ length: times }, () => refusal), ok);
  let refused = 0;
  const all = PolicyConfig.parse({
    urls: [endpoint.url],
    model: 'm',
    version: 'v',
    patience: 0.2,
    stream: 'off',
    ...config,
  });
  const policy = policyAt(all, { refusalPatience: 60, onRefused: () => void refused++ });
  await answered(policy.complete(START, [], never));
  return {
    endpoint,
    policy,
    refused: () => refused,
    [Symbol.asyncDispose]: () => endpoint[Symbol.asyncDispose](),
  };
}

test.each([429, 503])(
  'a rollout with answers outlasts HTTP %i, while its clock stands still',
  async (status) => {
    await using at = await refusing(sendError(status, 'busy'), 4);
    const started = performance.now();
    const reply = await answered(at.policy.complete(START, [], never));
    const seconds = (performance.now() - started) / 1000;
    expect(seconds).toBeGreaterThan(1);
    expect(at.refused()).toBe(4);
    expect(at.endpoint.requests).toHaveLength(6);
    expect(at.policy.pause.paused).toBe(false);
    // What the agent's clock counts is the time of the requests alone.
    expect(seconds - at.policy.pause.seconds()).toBeLessThan(seconds / 2);
    expect(reply.seconds).toBeLessThan(seconds / 2);
  },
);

test('a Retry-After beyond the patience is waited for by a rollout with answers', async () => {
  await using at = await refusing(sendError(429, 'x', {}, { 'retry-after': '1' }), 1);
  await answered(at.policy.complete(START, [], never));
  const [, second, third] = at.endpoint.requests;
  expect((third?.at ?? 0) - (second?.at ?? 0)).toBeGreaterThanOrEqual(990);
});

test('other faults, and a run without patience, fail as before', async () => {
  await using broken = await refusing(sendError(502, 'x'), 9);
  expect(await failureOf(broken.policy.complete(START, [], never))).toMatchObject({
    failureClass: 'policy_server_error',
  });
  expect(broken.refused()).toBe(0);
  await using hasty = await refusing(sendError(503, 'x'), 9, { patience: 0 });
  await failureOf(hasty.policy.complete(START, [], never));
  expect(hasty.endpoint.requests).toHaveLength(2);
});

test('each request has the headers of the policy, instead of the session header', async () => {
  const headers = { 'X-Session-ID': 'trajectory 7', 'X-SMG-Routing-Key': 'k' };
  await using at = await refusing(ok, 0, { session_header: 'x-session-id', headers });
  expect(at.endpoint.requests[0]?.headers).toMatchObject({
    'x-session-id': 'trajectory 7',
    'x-smg-routing-key': 'k',
    'x-swefarm-rollout': 'run.a__b-1.0',
  });
});

test('--session-header names a header with the id of the rollout', async () => {
  await using at = await refusing(ok, 0, { session_header: 'X-SMG-Routing-Key' });
  expect(at.endpoint.requests[0]?.headers).toMatchObject({
    'x-smg-routing-key': 'run.a__b-1.0',
    'x-swefarm-rollout': 'run.a__b-1.0',
  });
  const headerOf = (session_header: string) =>
    PolicyConfig.safeParse({ urls: [], model: 'm', session_header }).success;
  const refused = ['Authorization', 'content-length', 'x-swefarm-attempt', 'X Y', 'a:b', ''];
  expect(['x-session-id', 'X-Session-ID', ...refused].filter(headerOf)).toEqual([
    'x-session-id',
    'X-Session-ID',
  ]);
});
