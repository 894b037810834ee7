/** The OpenAPI document of `/v1` is valid, complete, and matches the answers of a gateway. */
import { Validator } from '@seriousme/openapi-schema-validator';
import { testConfig, testFarm } from '@swefarm/runs/test/farm.ts';
import { type Farm, silentLog } from '@swefarm/shared';
import { madeLiveTurn, madeTrajectory, plantResult, rawRedis } from '@swefarm/testkit';
import { commitRollout } from '@swefarm/trajectories/test/commitrollout.ts';
import { aReport } from '@swefarm/trajectories/test/result.ts';
import { expect, onTestFinished, test } from 'vitest';
import { createApp } from '../src/access/app.ts';
import { registerRoutes } from '../src/server.ts';
import { type Contract, createContract, fetchDocument, operationsOf } from './contract.ts';
import { callersFile, gatewayWithUser, testGateway } from './gateway.ts';
import { INSTANCE, RUN } from './gym.ts';

const SUBMISSION = { instances: [INSTANCE], group_size: 3, run: RUN };

test('the document is valid OpenAPI, and needs a token', async () => {
  const { url } = await testGateway();
  expect((await fetch(`${url}/v1/openapi.json`)).status).toBe(401);
  const document = await fetchDocument(url);
  const { valid, errors } = await new Validator().validate(structuredClone(document));
  expect(errors ?? []).toEqual([]);
  expect(valid).toBe(true);
  expect(document).toMatchObject({
    openapi: '3.1.0',
    security: [{ bearer: [] }, { basic: [] }],
    components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
  });
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const at = `${method} ${path}`;
      expect(operation.summary, at).toBeTruthy();
      const { responses } = operation;
      expect(Object.keys(responses), at).toEqual(expect.arrayContaining(['401', '429', '500', '503']));
      for (const [status, { content }] of Object.entries(responses)) {
        if (Number(status) < 400) continue;
        const schema = content?.['application/json']?.schema;
        expect(schema, `${at} ${status}`).toEqual({ $ref: '#/components/schemas/Refusal' });
      }
    }
  }
});

test('the routes of /v1 and the document are the same set', async () => {
  const config = testConfig();
  const farm = await testFarm(config);
  const log = silentLog();
  const app = createApp({}, log);
  onTestFinished(() => app.close());
  const registered = new Set<string>();
  app.addHook('onRoute', ({ method, url }) => {
    if (!url.startsWith('/v1/')) return;
    for (const one of [method].flat()) {
      // Fastify adds HEAD to each GET.
      if (one !== 'HEAD') registered.add(`${one} ${url.replace(/:(\w+)/g, '{$1}')}`);
    }
  });
  await registerRoutes(app, { farm, config, log, signal: new AbortController().signal }, []);
  await app.ready();
  const document = app.swagger() as unknown as Parameters<typeof operationsOf>[0];
  expect(operationsOf(document).toSorted()).toEqual([...registered].toSorted());
  expect(registered.size).toBeGreaterThan(20);
});

/** Callers with their own tokens: a trainer, another caller, and one with a quota of one request a minute. */
async function gatewayOfThree() {
  const path = await callersFile({
    trainer: "policies: ['*'], kinds: [validation]",
    stranger: 'policies: []',
    hasty: 'max_requests_per_minute: 1',
  });
  const limits = { gateway_body_bytes: 100_000, max_cpus: 4 };
  return await testGateway({ gateway_callers: path, gateway_token: null, ...limits });
}

const token = 'token-of-trainer';

test('answers of the gateway match the document', { timeout: 120_000 }, async () => {
  const { url, farm, config } = await gatewayOfThree();
  const document = await fetchDocument(url, token);
  const contract = createContract(document);
  const ask: Ask = (operation, status, asked = {}) =>
    contract.ask(url, operation, status, { token, ...asked });
  await ask('GET /v1/openapi.json', 200);
  await ask('POST /v1/responses', 501, { body: {} });
  const { run_id, done } = await askRuns(ask, farm);
  await askRollouts(ask, farm, done);
  await askPage(ask, farm, run_id, done);
  await askPolicies(ask);
  await askSessions(ask, farm);
  await askSessionInputs(ask, farm);
  await askDamaged(ask, farm, config.redis_prefix);
  await askRefusals(ask);
  await askWithRedisAway(contract);
  const answered = operationsOf(document).filter(
    (operation) => ![...contract.seen].some((one) => one.startsWith(`${operation} 2`)),
  );
  expect(answered).toEqual(['POST /v1/responses']);
  const statuses = new Set([...contract.seen].map((one) => Number(one.split(' ').at(-1))));
  expect([...statuses].toSorted()).toEqual([
    200, 201, 204, 400, 401, 403, 404, 409, 410, 413, 415, 422, 429, 500, 501, 503,
  ]);
});

type Ask = (
  operation: string,
  status: number,
  asked?: Parameters<Contract['ask']>[3],
) => ReturnType<Contract['ask']>;

async function askRuns(ask: Ask, farm: Farm) {
  const headers = { 'idempotency-key': 'step 1' };
  const { run_id } = await ask('POST /v1/runs', 201, { body: SUBMISSION, headers });
  await ask('POST /v1/runs', 200, { body: SUBMISSION, headers });
  await ask('POST /v1/runs', 409, { body: { ...SUBMISSION, group_size: 4 }, headers });
  await ask('POST /v1/runs', 404, { body: { ...SUBMISSION, instances: ['who__knows-1'] } });
  await ask('POST /v1/runs', 422, { body: { ...SUBMISSION, run: { ...RUN, sandbox: { cpus: 5 } } } });
  await ask('GET /v1/runs', 200);
  const params = { run: run_id };
  const record = await farm.runs.get(run_id);
  const [done = '', running = '', waiting = ''] = await farm.groups.open(run_id);
  if (!record) throw new Error('the run is not there');
  const report = aReport({ instance_id: 'a__b-1' });
  await commitRollout(farm, record, done, { turns: 2 }, report, madeTrajectory(2, 1));
  await farm.journal.claim(running, { worker: 'w1', node: 'here' });
  await ask('GET /v1/runs/{run}', 200, { params });
  await ask('GET /v1/runs/{run}', 404, { params: { run: 'r0' } });
  const lease = { run_ids: [run_id], lease_seconds: 900 };
  expect((await ask('POST /v1/runs/heartbeat', 200, { body: lease })).alive).toEqual([run_id]);
  await ask('POST /v1/runs/heartbeat', 400, { body: { run_ids: [] } });
  await ask('GET /v1/runs/{run}/results', 200, { params });
  await ask('GET /v1/runs/{run}/results', 400, { params, query: '?after=x' });
  await ask('GET /v1/runs/{run}/groups', 200, { params });
  await ask('GET /v1/runs/{run}/groups', 400, { params, query: '?keep=x' });
  await ask('GET /v1/rollouts/{rollout}', 200, { params: { rollout: running } });
  await ask('GET /v1/rollouts/{rollout}', 200, { params: { rollout: waiting } });
  await ask('POST /v1/runs/{run}/cancel', 200, { params, body: { rollouts: [waiting] } });
  await ask('POST /v1/runs/{run}/cancel', 400, { params, body: { rollouts: ['r0.a.0'] } });
  await ask('POST /v1/runs/{run}/cancel', 400, { params, body: { groups: ['no-such'] } });
  const { run_id: other } = await ask('POST /v1/runs', 201, { body: SUBMISSION });
  await ask('POST /v1/runs/{run}/cancel', 200, { params: { run: other }, body: {} });
  return { run_id, done };
}

async function askRollouts(ask: Ask, farm: Farm, done: string): Promise<void> {
  const params = { rollout: done };
  const { trajectory } = await ask('GET /v1/rollouts/{rollout}/artifact', 200, { params });
  expect(trajectory.turns[0].tokens.generation.length).toBeGreaterThan(0);
  await ask('GET /v1/rollouts/{rollout}/trajectory', 200, { params });
  const sample = await ask('GET /v1/rollouts/{rollout}/sample', 200, { params, query: '?lines=all' });
  expect(sample.segments).toHaveLength(1);
  await ask('GET /v1/rollouts/{rollout}', 200, { params });
  await ask('GET /v1/rollouts/{rollout}', 404, { params: { rollout: 'r0' } });
  const one = { request_id: 'a', instance: INSTANCE, run: RUN, wait_seconds: 0 };
  await ask('POST /v1/rollouts', 200, { body: one });
  await ask('POST /v1/rollouts', 404, { body: { ...one, instance: 'who__knows-1' } });
  await ask('POST /v1/rollouts', 422, { body: { ...one, run: {} } });
  const [open = ''] = await farm.groups.open(done.slice(0, done.indexOf('.')));
  await ask('GET /v1/rollouts/{rollout}/trajectory', 404, { params: { rollout: open } });
}

async function askPage(ask: Ask, farm: Farm, run: string, done: string): Promise<void> {
  await farm.registry.beat({
    ...{ worker: 'w1', node: 'here', runtime: 'docker', slots: 4, active: 1 },
    ...{ started_at: Date.now(), metrics: null, paused: null },
  });
  const [running = ''] = await farm.groups.open(run);
  const where = { worker: 'w1', node: 'here', stage: 'agent', attempt: 1, turns: 1 };
  await farm.live.mark({ ...where, rollout_id: running, claimed_at: Date.now(), at: Date.now() });
  await farm.live.turn(running, madeLiveTurn(madeTrajectory(2, 2), 0), 10);
  await ask('GET /v1/page/access', 200, { token: null });
  await ask('GET /v1/page/overview', 200);
  await ask('GET /v1/page/trends', 200, { query: `?runs=${run}&each=true` });
  await ask('GET /v1/page/trends', 400, { query: '?runs=,' });
  await ask('GET /v1/page/trends', 400, { query: '?runs=r0' });
  for (const id of [run, done])
    expect(await ask('GET /v1/page/branches/{id}', 200, { params: { id } })).toEqual({
      of: null,
      branches: [],
    });
  await ask('GET /v1/page/branches/{id}', 400, { params: { id: 'r0' } });
  const { running: live } = await ask('GET /v1/page/runs/{run}', 200, { params: { run } });
  expect(live).toHaveLength(1);
  await ask('GET /v1/page/runs/{run}', 400, { params: { run }, query: '?after=x' });
  const params = { rollout: done };
  await ask('GET /v1/page/rollouts/{rollout}', 200, { params });
  await ask('GET /v1/page/rollouts/{rollout}', 200, { params: { rollout: running } });
  await ask('GET /v1/page/rollouts/{rollout}', 404, { params: { rollout: 'r0' } });
  const tokens = 'GET /v1/page/rollouts/{rollout}/turns/{turn}/tokens';
  expect((await ask(tokens, 200, { params: { ...params, turn: 0 } })).tokens).not.toBeNull();
  await ask(tokens, 200, { params: { ...params, turn: 99 } });
  await ask('GET /v1/page/rollouts/{rollout}/log', 200, { params });
  const output = 'GET /v1/page/rollouts/{rollout}/outputs/{name}';
  expect(await ask(output, 200, { params: { ...params, name: 'none' } })).toEqual({ output: null });
  const { turns } = await ask('GET /v1/page/rollouts/{rollout}/live', 200, { params: { rollout: running } });
  expect(turns).toHaveLength(1);
}

async function askPolicies(ask: Ask): Promise<void> {
  const params = { name: 'default' };
  await ask('GET /v1/policies/{name}', 404, { params });
  const body = { version: 'step-1', state: 'serving' };
  await ask('PUT /v1/policies/{name}', 200, { params, body });
  await ask('PUT /v1/policies/{name}', 400, { params, body: {} });
  await ask('PUT /v1/policies/{name}', 403, { params, body, token: 'token-of-stranger' });
  await ask('GET /v1/policies', 200);
  await ask('GET /v1/policies/{name}', 200, { params });
  await ask('DELETE /v1/policies/{name}', 204, { params });
}

async function askSessions(ask: Ask, farm: Farm): Promise<void> {
  const request = { request_id: 'r1', instance: INSTANCE };
  const { session_id: id } = await ask('POST /v1/sessions', 200, { body: request });
  const differs = { ...request, sandbox: { cpus: 3 } };
  expect(await ask('POST /v1/sessions', 409, { body: differs })).toMatchObject({
    error: { code: 'session_differs', field: 'request_id' },
  });
  await ask('POST /v1/sessions', 422, { body: { ...differs, request_id: 'r2', sandbox: { cpus: 5 } } });
  await ask('POST /v1/sessions', 404, { body: { request_id: 'r2', run_id: 'r0', instance_id: 'a' } });
  await ask('POST /v1/sessions', 404, { body: { request_id: 'r2', instance_id: 'a__nowhere-1' } });
  await ask('POST /v1/sessions', 400, { body: { request_id: 'r2' } });
  const params = { id };
  const { rollout_id } = await ask('GET /v1/sessions/{id}', 200, { params });
  await ask('GET /v1/sessions/{id}', 404, { params: { id: 's000' } });
  const commands = 'POST /v1/sessions/{id}/commands';
  const command = (seq: number) => ({ params, body: { seq, command: 'ls', wait_s: 0 } });
  expect(await ask(commands, 200, command(1))).toEqual({ state: 'waiting', seq: 1 });
  await ask(commands, 409, command(3));
  await farm.sessions.open(id, 'w1', 'c1');
  for (let seq = 1; seq <= 20; seq++) {
    const answer = { seq, observation: 'a file', exit_code: 0, seconds: 0.1, note: null };
    if (seq > 1) await ask(commands, 200, command(seq));
    await farm.sessions.reply(id, answer);
  }
  expect(await ask(commands, 200, command(20))).toMatchObject({ state: 'answered', exit_code: 0 });
  await ask(commands, 410, command(1));
  const beat = 'POST /v1/sessions/{id}/heartbeat';
  await ask(beat, 200, { params });
  expect(await ask('POST /v1/sessions/heartbeat', 200, { body: { session_ids: [id] } })).toEqual({
    alive: [id],
  });
  const submission = 'POST /v1/sessions/{id}/submit';
  expect(await ask(submission, 200, { params, body: { wait_s: 0 } })).toEqual({ state: 'grading' });
  const record = await farm.runs.get(id);
  if (record) await commitRollout(farm, record, rollout_id, {}, aReport());
  await farm.sessions.end(id, 'submitted');
  expect(await ask(submission, 200, { params, body: { wait_s: 5 } })).toMatchObject({ state: 'ended' });
  expect(await ask(commands, 200, command(21))).toMatchObject({ state: 'ended', end: 'submitted' });
  await ask('GET /v1/sessions/{id}', 200, { params });
  await ask('DELETE /v1/sessions/{id}', 200, { params });
  await ask('DELETE /v1/sessions/{id}', 404, { params: { id: 's000' } });
}

async function askSessionInputs(ask: Ask, { sessions, runs }: Farm): Promise<void> {
  const body = { request_id: 'inputs', instance: INSTANCE, inputs: 'all', clock: 'commands' };
  const { session_id: id } = await ask('POST /v1/sessions', 200, { body });
  await ask('POST /v1/sessions', 409, { body: { ...body, clock: 'wall' } });
  // Workers of an earlier version leave the session to others.
  expect(await runs.get(id)).toMatchObject({ needs: 2 });
  const params = { id };
  const clock = 'POST /v1/sessions/{id}/clock';
  expect(await ask(clock, 200, { params, body: { paused: true } })).toMatchObject({ paused: true });
  await sessions.open(id, 'w1', 'c1');
  const inputs = [
    ['POST /v1/sessions/{id}/files/write', { path: '/x', data: 'AP8=', encoding: 'base64' }],
    ['POST /v1/sessions/{id}/files/read', { path: '/x' }],
    ['POST /v1/sessions/{id}/diff', {}],
    ['POST /v1/sessions/{id}/commands', { command: 'ls', cwd: '/', env: { A: 'b' }, raw_bytes: 9 }],
  ] as const;
  for (const [at, [route, input]] of inputs.entries()) {
    const request = { params, body: { ...input, seq: at + 1, wait_s: 0 } };
    await ask(route, 200, request);
    await ask(clock, 409, { params, body: { paused: true } });
    const answer = { seq: at + 1, observation: '', exit_code: null, seconds: 0, note: null };
    await sessions.reply(id, { ...answer, content: { bytes: 2, head_bytes: null } }, Buffer.from([0, 255]));
    expect(await ask(route, 200, request)).toMatchObject({ content: { data: 'AP8=', encoding: 'base64' } });
    await ask(route, 400, { params, body: { ...request.body, more: 1 } });
    await ask(route, 404, { ...request, params: { id: 's000' } });
  }
}

/** Stores a result and a run of another version: lists report them as unreadable, and a direct request for the result gets 500. */
async function askDamaged(ask: Ask, farm: Farm, prefix: string): Promise<void> {
  const { run_id: run } = await ask('POST /v1/runs', 201, { body: SUBMISSION });
  const [rollout = ''] = await farm.groups.open(run);
  await plantResult(rawRedis(farm), prefix, rollout, '{"format":"of-tomorrow"}');
  await ask('GET /v1/rollouts/{rollout}', 500, { params: { rollout } });
  const { unreadable } = await ask('GET /v1/runs/{run}/results', 200, { params: { run } });
  expect(unreadable).toHaveLength(1);
  await rawRedis(farm)('SET', `${prefix}:run:${run}`, '{"format":"of-tomorrow"}');
  const list = await ask('GET /v1/runs', 200);
  expect(list.unreadable).toHaveLength(1);
}

async function askRefusals(ask: Ask): Promise<void> {
  await ask('GET /v1/runs', 401, { token: null });
  await ask('GET /v1/openapi.json', 401, { token: 'unknown' });
  const text = { body: 'text', headers: { 'content-type': 'application/yaml' } };
  await ask('POST /v1/runs', 415, text);
  await ask('POST /v1/runs', 413, { body: { ...SUBMISSION, more: 'x'.repeat(100_000) } });
  await ask('POST /v1/runs', 400, { body: { ...SUBMISSION, more: 1 } });
  const stranger = { token: 'token-of-stranger' };
  const validation = { ...SUBMISSION, run: { ...RUN, kind: 'validation' } };
  await ask('POST /v1/runs', 403, { body: validation, ...stranger });
  const hasty = { token: 'token-of-hasty' };
  await ask('GET /v1/runs', 200, hasty);
  await ask('GET /v1/runs', 429, hasty);
}

/** Sends requests to a gateway whose Redis refuses every key. */
async function askWithRedisAway(contract: Contract): Promise<void> {
  const { url, allow } = await gatewayWithUser();
  await allow('resetkeys');
  await contract.ask(url, 'GET /v1/runs', 503);
  await contract.ask(url, 'POST /v1/runs', 503, { body: SUBMISSION });
  await contract.ask(url, 'GET /v1/page/overview', 503);
  await allow('allkeys');
}
