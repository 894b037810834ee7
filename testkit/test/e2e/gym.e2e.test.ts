/** Tests answers to `/run` of a real farm with scripted policies, by the rules of the trainer that consumes them. */

import { createServer, type IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { parseRolloutId } from '@swefarm/shared';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { listen } from '../../src/listen.ts';
import { conversation } from '../../src/policy/script.ts';
import { type ScriptedPolicy, startScriptedPolicy } from '../../src/policy/server.ts';
import { type Consumed, consume } from '../../src/trainers/consume.ts';
import { type GatewayFarm, startGatewayFarm } from './gatewayfarm.ts';
import { EXAMPLE_ID, twentyTurns } from './scripts.ts';

const CALLERS = `
callers:
  - {name: echo, entry: echo, token_env: T, failures: nemo-rl, run: {policy: {model: m, token_mode: echo}}}
  - {name: sync, entry: sync, token_env: T, failures: nemo-rl-sync, run: {policy: {model: m, token_mode: echo}}}
  - {name: text, entry: text, token_env: T, failures: collector, run: {policy: {model: m, token_mode: text, extra_body: {return_token_ids: true, logprobs: true}}}}
  - {name: stale, entry: stale, token_env: T, failures: nemo-rl, run: {max_staleness: 1, policy: {model: m, token_mode: echo, version: w1}}}
  - {name: strict, entry: strict, token_env: T, failures: nemo-rl, run: {policy: {model: m, token_mode: text}}}
`;

const stack = new AsyncDisposableStack();
let row: Record<string, unknown>;
let farm: GatewayFarm;

beforeAll(async () => {
  farm = await startGatewayFarm(stack, CALLERS);
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'rootfs', out: farm.folder });
  row = { ...built.rows[0] };
});
afterAll(() => stack.disposeAsync());

type Policy = Omit<Parameters<typeof startScriptedPolicy>[0], 'script'> & {
  think?: boolean;
  /** Actions of the trainer before the row is posted, and during the wait for the answer. */
  before?: (server: ScriptedPolicy) => Promise<void>;
  meanwhile?: (server: ScriptedPolicy) => Promise<void>;
};

async function rollout(entry: string, policy: Policy): Promise<Consumed & { text: string }> {
  const { think, before, meanwhile, ...options } = policy;
  const { conversations } = twentyTurns();
  const [resolves = []] = conversations[0]?.variants ?? [];
  // Three turns suffice: a command that looks around, the fix, and the submit.
  const turns = resolves.slice(-3).map((turn) => (think ? { ...turn, think: 'Let me see.' } : turn));
  await using server = await startScriptedPolicy({ ...options, script: conversation(turns) });
  await before?.(server);
  const asked = farm.run(entry, { ...row, policy_base_url: server.url, _rowidx: 0 });
  await meanwhile?.(server);
  const { status, text } = await asked;
  return { ...consume(status, text), text };
}

/** Starts a proxy that shows each request to `see`. */
async function startRelay(to: string, see: (request: IncomingMessage, body: string) => void) {
  const server = createServer(async (request, reply) => {
    const body = Buffer.concat(await Array.fromAsync(request)).toString();
    see(request, body);
    const { method = 'GET', url = '' } = request;
    const sent = { method, headers: { 'content-type': 'application/json' }, ...(body ? { body } : {}) };
    const answer = await fetch(new URL(url, to), sent);
    reply.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' });
    reply.end(Buffer.from(await answer.arrayBuffer()));
  });
  const url = `http://127.0.0.1:${await listen(server)}/v1`;
  return { url, [Symbol.asyncDispose]: async () => void server.close().closeAllConnections() };
}

const announce = async (change: Record<string, unknown>): Promise<void> =>
  expect((await farm.call('PUT', '/policy', change)).status).toBe(200);

/** Waits until a fault hits the rollout. The gateway's probe of the endpoint also gets faults, possibly before the rollout has begun. */
const untilFault = (server: ScriptedPolicy): Promise<void> =>
  expect
    .poll(
      () =>
        Object.entries(server.stats().rollouts).some(
          ([name, { faults }]) => faults > 0 && name.includes(EXAMPLE_ID),
        ),
      { timeout: 120_000 },
    )
    .toBe(true);

test('with token echo a sample is contiguous and trained on', async () => {
  const sample = await rollout('echo', {});
  expect(sample).toMatchObject({ raises: null, masked: false, reward: 1, trainedTurns: 3 });
});

test('a template that strips thinking gives a trainer a named failure', async () => {
  const broken: Policy = { template: 'strips-thinking', think: true };
  expect(await rollout('text', broken)).toMatchObject({ raises: 'non-contiguous', reward: 1 });
  const refused = await rollout('strict', broken);
  expect(refused).toMatchObject({ raises: 'data' });
  expect(refused.text).toContain('policy_tokens');
});

test('missing tokens give a trainer a named failure', async () => {
  expect(await rollout('text', { tokens: false })).toMatchObject({ raises: 'no trainable item', reward: 1 });
  const refused = await rollout('strict', { tokens: false });
  expect(refused).toMatchObject({ raises: 'data' });
  expect(refused.text).toContain('policy_tokens');
});

test('a failed endpoint is never a reward', async () => {
  const failed: Policy = { faults: [{ kind: 'unauthorized' }] };
  expect(await rollout('text', failed)).toMatchObject({ reward: 0, failureClass: 'policy_unauthorized' });
  expect(await rollout('echo', failed)).toMatchObject({ raises: 'infrastructure' });
});

test('a rollout without an answer is replaced under its call; text before a failure weighs 0', async () => {
  const sample = await rollout('sync', {
    faults: [
      { kind: 'unauthorized', turn: 0, times: 1 },
      { kind: 'unauthorized', turn: 2 },
    ],
  });
  expect(sample).toMatchObject({
    raises: null,
    masked: true,
    reward: 0,
    trainedTurns: 2,
    failureClass: null,
  });
  const { rollout_id } = JSON.parse(sample.text) as { rollout_id: string };
  const { runId, index } = parseRolloutId(rollout_id);
  expect(index).toBe(1);
  expect(await (await farm.call('GET', `/v1/runs/${runId}`)).json()).toMatchObject({
    counts: { committed: 2 },
  });
});

test('a rollout uses the endpoint, headers and fields of its row', async () => {
  const [first = []] = twentyTurns().conversations[0]?.variants ?? [];
  await using server = await startScriptedPolicy({ script: conversation(first.slice(-3)) });
  const seen = new Set<string>();
  await using relay = await startRelay(server.url, ({ headers, url = '' }, body) => {
    const { 'x-session-id': session, 'x-swefarm-rollout': rollout } = headers;
    // The gateway's probe of the endpoint omits the headers of the rollout.
    if (rollout && url.endsWith('/completions'))
      seen.add(JSON.stringify([session, JSON.parse(body).cache_salt]));
  });
  const ask = async (salt: string, urls?: string) => {
    const policy = {
      ...(urls ? { urls } : {}),
      headers: { 'X-Session-ID': `s-${salt}` },
      extra_body: { cache_salt: salt },
    };
    const { status, text } = await farm.run('echo', {
      ...row,
      policy,
      policy_base_url: server.url,
      _rowidx: 0,
    });
    expect(consume(status, text)).toMatchObject({ raises: null, reward: 1, trainedTurns: 3 });
    return parseRolloutId((JSON.parse(text) as { rollout_id: string }).rollout_id).runId;
  };
  const runs = await Promise.all([ask('1', relay.url), ask('2', relay.url), ask('3')]);
  expect([...seen].toSorted()).toEqual(['["s-1","1"]', '["s-2","2"]']);
  expect(new Set(runs).size).toBe(1);
});

test('new weights in a rollout: one contiguous sample of both versions, and no failure', async () => {
  // The engine aborts the second turn until it has new weights.
  const sample = await rollout('echo', {
    faults: [{ kind: 'aborted', turn: 1 }],
    before: (server) => announce({ version: 'w1', endpoints: [server.url], state: 'serving' }),
    async meanwhile(server) {
      await untilFault(server);
      await announce({ state: 'updating' });
      // An engine that loads weights aborts answers. The worker learns of the update at its next aborted answer, or within a second.
      await delay(2_000);
      await server.setFault();
      await announce({ version: 'w2', state: 'serving' });
    },
  });
  expect(sample).toMatchObject({ raises: null, masked: false, reward: 1, trainedTurns: 3 });
  expect(JSON.parse(sample.text)).toMatchObject({ policy_version: 'w2', policy_versions: ['w1', 'w2'] });
});

test('stale weights end a rollout in a turn; a rollout that begins with new ones is a sample', async () => {
  const old = await rollout('stale', {
    faults: [{ kind: 'silence', turn: 1 }],
    before: (server) => announce({ version: 'w1', endpoints: [server.url], state: 'serving' }),
    async meanwhile(server) {
      await untilFault(server);
      for (const version of ['w2', 'w3']) await announce({ version });
    },
  });
  expect(old).toMatchObject({ raises: 'infrastructure' });
  expect(old.text).toContain('stale');
  const fresh = await rollout('stale', { before: (server) => announce({ endpoints: [server.url] }) });
  expect(fresh).toMatchObject({ raises: null, masked: false, reward: 1, trainedTurns: 3 });
  expect(JSON.parse(fresh.text)).toMatchObject({ policy_versions: ['w3'] });
});
