import type { Farm } from '@swefarm/shared';
import { until } from '@swefarm/testkit';
import { aFailure } from '@swefarm/trajectories/test/result.ts';
import { expect, test } from 'vitest';
import { bearer, testGateway } from './gateway.ts';
import { finish, INSTANCE, POLICY, post, queued, rolloutOf, row, untilQueued } from './gym.ts';

/** Returns the number of rollouts of all runs. */
async function rollouts(farm: Farm): Promise<number> {
  const runs = await farm.runs.list();
  const groups = await Promise.all(runs.map(({ run_id }) => farm.results.groups(run_id)));
  const counts = await Promise.all(runs.map(({ run_id }) => farm.results.counts(run_id)));
  const left = groups.flatMap((group) => [...group.values()]).reduce((sum, group) => sum + group.left, 0);
  return left + counts.reduce((sum, count) => sum + count.committed, 0);
}

test('a row is answered when its rollout ends, with floats as floats and no repeated header', async () => {
  const { url, farm } = await testGateway();
  const asked = post(url, row({ _ng_task_index: 0, _ng_rollout_index: 0 }));
  await untilQueued(farm, 1);
  await finish(farm);
  const reply = await asked;
  expect(reply.status).toBe(200);
  for (const [, value] of reply.headers) expect(value).not.toMatch(/, *application/);
  const text = await reply.text();
  expect(text).toContain('"reward":1.0');
  expect(JSON.parse(text)).toMatchObject({
    reward: 1,
    resolved: true,
    judged: true,
    instance_id: 'a__b-1',
    instance_config: { mask_sample: false },
    responses_create_params: { temperature: 1, input: [{ role: 'user' }] },
    response: { object: 'response', output: [], usage: { total_tokens: 15 } },
    metadata: { instance_id: 'a__b-1', model_patch: expect.stringContaining('patch of') },
    ng_trajectory: { task_id: 'a__b-1', rollout_id: '0-0' },
    sampling: { temperature: 1 },
  });
  const [run] = await farm.runs.list();
  expect(run).toMatchObject({ open: true, kind: 'collection', policy: { sampling: { temperature: 1 } } });
});

test('equal siblings are separate rollouts, and an answered rollout is not answered again', async () => {
  const { url, farm } = await testGateway();
  const asked = Array.from({ length: 3 }, () => post(url, row({ _ng_rollout_index: 0 })));
  await untilQueued(farm, 3);
  await finish(farm);
  const ids = await Promise.all(asked.map(rolloutOf));
  expect(new Set(ids).size).toBe(3);
  // A later training step posts the same body again.
  const later = post(url, row({ _ng_rollout_index: 0 }));
  await untilQueued(farm, 1);
  await finish(farm);
  expect(ids).not.toContain(await rolloutOf(later));
});

test('a caller whose connection dropped finds its rollout again, once', async () => {
  const { url, farm } = await testGateway();
  const cut = new AbortController();
  const body = row({ _ng_rollout_index: 0 });
  const lost = [post(url, body, { signal: cut.signal }), post(url, body, { signal: cut.signal })];
  await untilQueued(farm, 2);
  const before = await queued(farm);
  cut.abort();
  await Promise.allSettled(lost);
  await until(async () => (await farm.calls.count()).orphaned === 2);
  const again = [post(url, body), post(url, body), post(url, body)];
  await untilQueued(farm, 3);
  await finish(farm, { exit_status: 'submitted' });
  const ids = await Promise.all(again.map(rolloutOf));
  expect(ids).toEqual(expect.arrayContaining(before));
  expect(new Set(ids).size).toBe(3);
});

test.each([
  ['the row', { _ng_rollout_id: 'step-3.r7' }, {}],
  ['a header', {}, { 'idempotency-key': 'k1' }],
])('an id in %s makes one rollout of all calls, also after the answer', async (_where, fields, headers) => {
  const { url, farm } = await testGateway();
  const send = () => post(url, row({ _ng_rollout_index: 0, ...fields }), { headers });
  const asked = Array.from({ length: 4 }, send);
  await until(async () => (await queued(farm)).length > 0);
  await finish(farm);
  const ids = await Promise.all(asked.map(rolloutOf));
  expect(new Set([...ids, await rolloutOf(send())]).size).toBe(1);
  expect(await rollouts(farm)).toBe(1);
});

test('a rollout whose caller does not return is cancelled after the grace', async () => {
  const { url, farm } = await testGateway({ gateway_collector_grace_seconds: 0.5 });
  const cut = new AbortController();
  const lost = post(url, row({ _ng_rollout_index: 0 }), { signal: cut.signal });
  await untilQueued(farm, 1);
  const [id = ''] = await queued(farm);
  cut.abort();
  await lost.catch(() => undefined);
  await until(async () => (await farm.cancel.isCancelled([id])).get(id) === 'orphan');
  // After the cancellation, an equal request gets a new rollout.
  const again = post(url, row({ _ng_rollout_index: 0 }));
  await untilQueued(farm, 2);
  for (const job of await farm.queue().getJobs(['prioritized'])) if (job.id === id) await job.remove();
  await finish(farm);
  expect(await rolloutOf(again)).not.toBe(id);
});

test('failures are answered in the mode of the caller', async () => {
  const failed = aFailure();
  const over = { outcome: failed.outcome, resolved: null, reward: null, failure: failed.failure };
  const answerOf = async (mode: 'collector' | 'nemo-rl' | 'auto', fields: Record<string, unknown>) => {
    const { url, farm } = await testGateway({ gateway_failures: mode });
    const asked = post(url, row(fields));
    await untilQueued(farm, 1);
    await finish(farm, over);
    const reply = await asked;
    return { status: reply.status, body: (await reply.json()) as Record<string, unknown> };
  };
  const row200 = { status: 200, body: { reward: 0, judged: false, _ng_failure_class: 'policy_unreachable' } };
  const row503 = { status: 503, body: { error: { code: 'policy_unreachable' } } };
  expect(await answerOf('collector', {})).toMatchObject(row200);
  expect(await answerOf('nemo-rl', { _ng_rollout_index: 0 })).toMatchObject(row503);
  expect(await answerOf('auto', { _ng_rollout_index: 0 })).toMatchObject(row200);
  expect(await answerOf('auto', { _rowidx: 0 })).toMatchObject(row503);
  const numbered = { _rowidx: 0, _ng_rollout_index: 0, _ng_task_index: 0 };
  expect(await answerOf('auto', numbered)).toMatchObject(row503);
});

test('a sync trainer gets new rollouts until its deadline, then a failure', async () => {
  const { url, farm } = await testGateway({ gateway_failures: 'nemo-rl-sync', gateway_max_hold_seconds: 3 });
  const asked = post(url, row());
  await untilQueued(farm, 1);
  const reply = await asked;
  expect(reply.status).toBe(503);
  expect(await reply.json()).toMatchObject({
    error: { code: 'hold_expired', message: expect.stringContaining('this step ends with an error') },
  });
  const [id = ''] = await queued(farm);
  expect((await farm.cancel.isCancelled([id])).get(id)).toBe('deadline');
});

test('bad rows are refused by field, and other rows run', async () => {
  const { url, farm } = await testGateway({ gateway_body_bytes: 100_000 });
  const good = post(url, row({ _ng_rollout_index: 0 }));
  const bad: [unknown, number, string | undefined, Record<string, string>?][] = [
    [{ responses_create_params: { input: [] }, instance_id: 'who__knows-1', ...POLICY }, 404, 'instance_id'],
    [row({ instance_id: undefined, problem_statement: 'x' }), 422, 'instance_id'],
    [row({ instance_id: '../etc' }), 422, 'instance_id'],
    [row({ base_commit: undefined }), 422, 'base_commit'],
    [row({ FAIL_TO_PASS: 'no list' }), 422, 'FAIL_TO_PASS'],
    [row({ responses_create_params: undefined }), 400, 'responses_create_params'],
    [row({ responses_create_params: { input: 5 } }), 400, 'responses_create_params.input'],
    [
      row({ responses_create_params: { input: [], temperature: 'hot' } }),
      400,
      'responses_create_params.temperature',
    ],
    [row({ _ng_rollout_id: 'a b' }), 400, '_ng_rollout_id'],
    [row({ policy_base_url: 'no url' }), 400, 'policy_base_url'],
    [row({ policy_base_url: undefined }), 422, 'policy_base_url'],
    [row(), 401, 'authorization', { authorization: 'Bearer wrong' }],
    [row({ patch: 'x'.repeat(200_000) }), 413, 'body'],
    ['{"responses_create_params":', 400, 'body'],
    ['', 400, 'body'],
    [row(), 415, 'content-type', { 'content-type': 'text/html' }],
    [row(), 415, 'content-type', { 'content-type': 'text/plain' }],
    ['[1]', 400, 'body'],
  ];
  for (const [body, status, field, headers] of bad) {
    const reply = await post(url, body, headers ? { headers } : {});
    const { error } = (await reply.json()) as { error: { field?: string; message: string } };
    expect([reply.status, error.field]).toEqual([status, field]);
    expect(error.message).toMatch(/expected|unknown|larger than/);
    expect(error.message).not.toMatch(/undefined|Invalid input/);
  }
  await untilQueued(farm, 1);
  await finish(farm);
  expect((await good).status).toBe(200);
});

test('rows of both forms give policy and key, and no record contains the key', async () => {
  const { url, farm } = await testGateway();
  const { responses_create_params, agent_ref, policy_model_name } = row();
  const asked = post(url, {
    agent_ref,
    policy_base_url: ['http://127.0.0.1:9/v1', 'http://127.0.0.1:10/v1'],
    policy_model_name,
    policy_api_key: 'hunter2hunter2',
    responses_create_params: {
      ...(responses_create_params as object),
      ...{ max_output_tokens: 512, top_k: 20, min_p: 0.1, repetition_penalty: 1.1, stop: 'END', seed: 7 },
      metadata: {
        instance_id: 'a__b-1',
        base_commit: 'c1',
        problem_statement: 'Still.',
        golden_patch: 'p',
        instance_dict: JSON.stringify(INSTANCE),
      },
    },
    max_sequence_tokens: 12_000,
    policy_version: '7',
    _rowidx: 3,
  });
  await untilQueued(farm, 1);
  const [run] = await farm.runs.list();
  expect(run).toMatchObject({
    kind: 'training',
    agent: { max_sequence_tokens: 12_000 },
    policy: {
      urls: ['http://127.0.0.1:9/v1', 'http://127.0.0.1:10/v1'],
      require_tokens: true,
      version: '7',
      sampling: { max_tokens: 512, top_k: 20, min_p: 0.1, repetition_penalty: 1.1, stop: ['END'], seed: 7 },
    },
  });
  expect(JSON.stringify(run)).not.toContain('hunter2');
  const stored = await farm.secrets.get(run?.policy?.api_key_ref ?? '');
  expect(stored?.secret.reveal()).toBe('hunter2hunter2');
  // Workers send the key of a row only to the endpoints of the row.
  expect(stored?.origins).toEqual(['http://127.0.0.1:9', 'http://127.0.0.1:10']);
  expect(await farm.runs.getInstance(run?.run_id ?? '', 'a__b-1')).toMatchObject({
    base_commit: 'c1',
    problem_statement: 'Still.',
    patch: 'p',
    image: 'x:1',
  });
  // A rollout that is judged without a trained turn is no sample for a trainer.
  await finish(farm);
  expect((await asked).status).toBe(422);
});

test('a row may lower the sequence tokens that the operator allows, but not raise them', async () => {
  const { url, farm } = await testGateway({}, { agent: { max_sequence_tokens: 1000 } });
  const limits = [500, 2000, undefined];
  const asked = limits.map((limit) =>
    post(url, row({ max_sequence_tokens: limit, instance_id: `a__b-${limit}` })),
  );
  await untilQueued(farm, limits.length);
  const runs = await farm.runs.list();
  expect(runs.map(({ agent }) => agent.max_sequence_tokens).sort()).toEqual([1000, 500]);
  expect((await post(url, row({ max_sequence_tokens: 0 }))).status).toBe(400);
  for (const _ of limits) await finish(farm);
  await Promise.all(asked);
});

test('Gym finds the agent, the environment server, metrics and a status', async () => {
  const { url } = await testGateway();
  const get = async (path: string, headers: Record<string, string>) =>
    (await (await fetch(`${url}${path}`, { headers })).json()) as Record<string, never>;
  const basic = { authorization: `Basic ${Buffer.from('farm:a-token-of-this-test').toString('base64')}` };
  const at = { host: 'farm:a-token-of-this-test@127.0.0.1', port: Number(new URL(url).port) };
  expect(await get('/global_config_dict_yaml', basic)).toEqual({
    head_server: at,
    swe_farm: { responses_api_agents: { swe_farm: at } },
    swe_farm_environment_server: {
      environment_servers: {
        legacy_agent: { ...at, agent_server: { type: 'responses_api_agents', name: 'swe_farm' } },
      },
    },
  });
  expect(await get('/', bearer())).toMatchObject({ status: 'ok' });
  const rows = [1, 0, 1, 1].map((reward, index) => ({
    reward,
    resolved: reward === 1,
    judged: true,
    instance_id: `a__b-${index >> 1}`,
    _ng_task_index: index >> 1,
    turns: 4,
  }));
  const metrics = await post(url, { verify_responses: rows }, { path: '/aggregate_metrics' });
  expect(await metrics.json()).toMatchObject({
    key_metrics: { 'mean/reward': 0.75, 'pass@1[avg-of-2]': 0.75, 'pass@2': 1, resolved: 3, total: 4 },
    agent_metrics: { 'mean/turns': 4, 'pass@1': 0.75, groups: { complete: 2, total: 2 } },
    group_level_metrics: [{ _ng_task_index: 0, 'mean/reward': 0.5 }, { _ng_task_index: 1 }],
  });
});
