/** Tenants of one gateway: protection of the operator's key and of other callers' policies. */

import { type Farm, type ProducerConfig, Secret } from '@swefarm/shared';
import { until } from '@swefarm/testkit';
import { commitRollout } from '@swefarm/trajectories/test/commitrollout.ts';
import { expect, test } from 'vitest';
import { bearer, callersFile, ask as send, testGateway } from './gateway.ts';
import { INSTANCE as instance, post, row } from './gym.ts';

const OPERATOR = 'http://vllm.internal:8000/v1';
const KEY = 'sk-of-the-operator';

/** Starts a gateway with four callers, each with its own token: two trainers and two others. The policy is the operator's. */
async function tenants(over: Partial<ProducerConfig> = {}, limits = '') {
  const run = `run: {policy: {urls: ["${OPERATOR}"], model: m`;
  const path = await callersFile({
    trainer: `policies: [default], kinds: [validation], ${run}}}`,
    second: `${run}, name: second}}`,
    stranger: `${run}}}${limits}`,
    nobody: `policies: [], ${run}, name: second}}`,
  });
  const made = await testGateway({
    gateway_callers: path,
    gateway_token: null,
    policy_api_key: new Secret(KEY),
    policy_api_key_origins: ['http://gpu7:8000'],
    ...over,
  });
  const ask = (who: string, method: string, route: string, body?: object) =>
    send(`${made.url}${route}`, method, body, `token-of-${who}`);
  return { ...made, ask };
}

const submission = (run: object = {}, more: object = {}) => ({ instances: [instance], run, ...more });

const keyOf = async (farm: Farm, runId: string) => {
  const ref = (await farm.runs.get(runId))?.policy?.api_key_ref;
  return ref ? await farm.secrets.get(ref) : null;
};

test('the key of a run is for the origins of the operator, whatever policy the caller names', async () => {
  const { ask, farm } = await tenants();
  const submit = async (policy: object) => {
    const { status, body } = await ask('stranger', 'POST', '/v1/runs', submission({ policy }));
    expect(status).toBe(201);
    return await keyOf(farm, body.run_id);
  };
  for (const policy of [{}, { name: 'evil' }, { urls: [OPERATOR] }, { urls: ['http://gpu7:8000/v1'] }]) {
    const stored = await submit(policy);
    expect(stored?.secret.reveal()).toBe(KEY);
    expect(stored?.origins).toEqual(['http://vllm.internal:8000', 'http://gpu7:8000']);
  }
  expect(await submit({ urls: ['http://attacker/v1'] })).toBeNull();
  expect(await submit({ urls: [OPERATOR, 'http://attacker/v1'] })).toBeNull();
});

test('only callers with a policy set its state', async () => {
  const { ask, farm } = await tenants();
  const update = { state: 'updating', endpoints: ['http://attacker/v1', OPERATOR] };
  const put = async (who: string, name: string) =>
    (await ask(who, 'PUT', `/v1/policies/${name}`, update)).status;
  expect((await ask('trainer', 'PUT', '/policy', { state: 'serving', version: 'step-1' })).status).toBe(200);
  expect(await put('second', 'second')).toBe(200);
  for (const who of ['stranger', 'second', 'nobody']) {
    const refused = await ask(who, 'PUT', '/policy', update);
    expect(refused).toMatchObject({
      status: 403,
      body: { error: { code: 'policy_forbidden', field: 'name' } },
    });
    expect(refused.body.error.message).toContain('policies: [default]');
    expect(await put(who, 'default')).toBe(403);
    expect((await ask(who, 'DELETE', '/v1/policies/default')).status).toBe(403);
  }
  expect(await put('stranger', 'evil')).toBe(403);
  expect(await put('nobody', 'second')).toBe(403);
  expect(await put('trainer', 'second')).toBe(403);
  expect(await farm.policies.list()).toMatchObject([
    { name: 'default', state: 'serving', endpoints: [], version: 'step-1' },
    { name: 'second', state: 'updating' },
  ]);
  expect((await ask('stranger', 'GET', '/policy')).status).toBe(200);
});

/** Each row: title, ceiling of the operator, section and key of the run, an excessive value, and a part of the message. */
test.each<[string, Partial<ProducerConfig>, [section: string, key: string], unknown, string?]>([
  ['CPUs', { max_cpus: 4 }, ['sandbox', 'cpus'], 5],
  ['memory', { max_memory_bytes: 2 ** 32 }, ['sandbox', 'memory_bytes'], 2 ** 33, '4294967296'],
  ['processes', { max_pids: 512 }, ['sandbox', 'pids'], 513],
  ['a disk', { max_disk_bytes: 10 }, ['sandbox', 'disk_bytes'], 11],
  ["the agent's network", { max_network: 'none' }, ['sandbox', 'agent_network'], 'egress'],
  ["the tests' network", { max_network: 'none' }, ['sandbox', 'eval_network'], 'egress'],
  ['turns', { max_turns: 250 }, ['agent', 'step_limit'], 251],
  ['a command', { max_command_seconds: 60 }, ['agent', 'step_timeout'], 61],
  ['the agent', { max_agent_seconds: 3600 }, ['agent', 'time_limit'], 3601],
  ['the tests', { max_evaluation_seconds: 1800 }, ['evaluation', 'timeout'], 1801],
  ['a log', { max_log_bytes: 2 ** 26 }, ['evaluation', 'log_limit'], 2 ** 27],
  ['a life', { max_ttl_seconds: 700_000 }, ['', 'ttl'], 800_000],
])(
  '%s beyond the ceiling is refused with field, value, ceiling and setting',
  async (_, over, [section, key], value, message = Object.keys(over)[0] ?? '') => {
    const { ask, farm } = await tenants(over);
    const run = section === '' ? { [key]: value } : { [section]: { [key]: value } };
    const field = ['run', section, key].filter(Boolean).join('.');
    const refused = await ask('stranger', 'POST', '/v1/runs', submission(run));
    expect(refused).toMatchObject({ status: 422, body: { error: { code: 'over_ceiling', field } } });
    expect(refused.body.error.message).toContain(message);
    expect(refused.body.error.message).toContain('its operator');
    expect(await farm.runs.list()).toEqual([]);
    expect((await ask('stranger', 'POST', '/v1/runs', submission())).status).toBe(201);
  },
);

test('sessions, calls and instances have the same ceilings', async () => {
  const { ask, farm } = await tenants({ max_network: 'none', max_cpus: 1 });
  const session = { request_id: 'r', instance };
  const over = [
    ask('stranger', 'POST', '/v1/sessions', { ...session, sandbox: { cpus: 2 } }),
    ask('stranger', 'POST', '/v1/sessions', { ...session, instance: { ...instance, needs_egress: true } }),
    ask('stranger', 'POST', '/v1/runs', submission({}, { instances: [{ ...instance, needs_egress: true }] })),
    ask('stranger', 'POST', '/run', row({ needs_egress: true })),
  ];
  const fields = (await Promise.all(over)).map(({ status, body: { error } }) => [
    ...[status, error.code, error.field],
  ]);
  expect(fields).toEqual([
    [422, 'over_ceiling', 'sandbox.cpus'],
    [422, 'over_ceiling', 'instance.needs_egress'],
    [422, 'over_ceiling', 'instances.0.needs_egress'],
    [422, 'over_ceiling', 'needs_egress'],
  ]);
  expect((await ask('stranger', 'POST', '/v1/sessions', session)).status).toBe(200);
  expect(await farm.queue().getJobCounts('prioritized')).toEqual({ prioritized: 1 });
});

test('the size of a run is bounded by instances, by group and by both', async () => {
  const sizes = { gateway_max_instances: 2, gateway_max_group_size: 5, gateway_max_rollouts: 6 };
  const { ask } = await tenants(sizes);
  const two = [instance, { ...instance, instance_id: 'a__b-2' }];
  const fieldOf = async (body: object) => {
    const { status, body: reply } = await ask('stranger', 'POST', '/v1/runs', body);
    return [status, reply.error?.field, /raise (\w+)/.exec(reply.error?.message ?? '')?.[1]];
  };
  const three = [...two, { ...instance, instance_id: 'a__b-3' }];
  expect(await fieldOf(submission({}, { instances: three }))).toEqual([
    422,
    'instances',
    'gateway_max_instances',
  ]);
  const group = [422, 'group_size', 'gateway_max_group_size'];
  expect(await fieldOf(submission({}, { group_size: 6 }))).toEqual(group);
  expect(await fieldOf(submission({ oversample: 3, refills: 1 }, { group_size: 2 }))).toEqual(group);
  const all = await fieldOf(submission({}, { instances: two, group_size: 4 }));
  expect(all).toEqual([422, 'group_size', 'gateway_max_rollouts']);
  expect(await fieldOf(submission({}, { instances: two, group_size: 3 }))).toEqual([
    201,
    undefined,
    undefined,
  ]);
});

test('only callers that the operator allows submit validation, and none submits a session', async () => {
  const { ask } = await tenants();
  const as = async (who: string, kind: string) => {
    const { status, body } = await ask(who, 'POST', '/v1/runs', submission({ kind }));
    return [status, body.error?.field];
  };
  expect(await as('trainer', 'validation')).toEqual([201, undefined]);
  expect(await as('stranger', 'validation')).toEqual([403, 'run.kind']);
  expect(await as('stranger', 'training')).toEqual([201, undefined]);
  for (const who of ['stranger', 'trainer']) expect(await as(who, 'session')).toEqual([422, 'run.kind']);
  const alone = await testGateway();
  const body = submission({ kind: 'validation', policy: { urls: [OPERATOR], model: 'm' } });
  expect((await send(`${alone.url}/v1/runs`, 'POST', body)).status).toBe(201);
});

test("each result frees a rollout of its caller's quota; other callers have their own", async () => {
  const { ask, farm, url } = await tenants({}, ', max_in_flight: 4');
  const submit = async (group_size: number, who = 'stranger', more: object = {}) =>
    await ask(who, 'POST', '/v1/runs', submission(more, { group_size }));
  const first = await submit(3);
  expect(first.status).toBe(201);
  const refused = await submit(2);
  expect(refused).toMatchObject({ status: 429, after: '10', body: { error: { code: 'over_quota' } } });
  expect(refused.body.error.message).toContain('max_in_flight');
  expect((await submit(5, 'second')).status).toBe(201);
  // One slot is left: one of several calls waits, and a session is refused.
  const gone = new AbortController();
  const options = { headers: bearer('token-of-stranger'), signal: gone.signal };
  const calls = [0, 1, 2].map((index) =>
    post(url, row({ policy_base_url: undefined, _ng_rollout_index: index }), options).then(
      ({ status }) => status,
      () => 'held',
    ),
  );
  await until(async () => (await farm.calls.count()).connected === 1);
  expect((await ask('stranger', 'POST', '/v1/sessions', { request_id: 'r', instance })).status).toBe(429);
  // A run frees its part of the quota when its rollouts are committed.
  const record = await farm.runs.get(first.body.run_id);
  if (record) for (const id of await farm.groups.open(record.run_id)) await commitRollout(farm, record, id);
  expect((await submit(4)).status).toBe(429);
  expect((await submit(3)).status).toBe(201);
  gone.abort();
  expect((await Promise.all(calls)).toSorted()).toEqual([429, 429, 'held']);
});

test('a token has a quota of requests a minute, without probes', async () => {
  const { ask, url } = await tenants({}, ', max_requests_per_minute: 3');
  const statuses = [];
  for (let count = 0; count < 5; count++) statuses.push((await ask('stranger', 'GET', '/v1/runs')).status);
  expect(statuses).toEqual([200, 200, 200, 429, 429]);
  const { after, body } = await ask('stranger', 'GET', '/v1/runs');
  expect(Number(after)).toBeGreaterThan(0);
  expect(Number(after)).toBeLessThanOrEqual(60);
  expect(body.error).toMatchObject({ code: 'too_many_requests' });
  expect((await ask('trainer', 'GET', '/v1/runs')).status).toBe(200);
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
});
