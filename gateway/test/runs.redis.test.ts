import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openRow, readDataset, toInstance } from '@swefarm/datasets';
import { FAMILY_ROWS } from '@swefarm/datasets/test/familyrows.ts';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { commitRollout } from '@swefarm/trajectories/test/commitrollout.ts';
import { expect, test } from 'vitest';
import { ask, testGateway } from './gateway.ts';
import { INSTANCE as instance, post, RUN } from './gym.ts';

test('a run is submitted, followed, cancelled and read over HTTP', async () => {
  const { url, farm } = await testGateway();
  const get = (path: string) => ask(`${url}${path}`, 'GET');
  const body = { instances: [instance], group_size: 3, run: RUN };
  const headers = { 'idempotency-key': 'step 1' };
  const submitted = await post(url, body, { path: '/v1/runs', headers });
  expect(submitted.status).toBe(201);
  const { run_id, rollouts } = (await submitted.json()) as { run_id: string; rollouts: number };
  expect(rollouts).toBe(3);
  // The same key is the same run; other settings are refused.
  const again = async () => (await post(url, body, { path: '/v1/runs', headers })).json();
  expect(await again()).toMatchObject({ run_id, cancelled: null });
  const other = await post(url, { ...body, group_size: 4 }, { path: '/v1/runs', headers });
  expect([other.status, await other.json()]).toMatchObject([409, { error: { field: 'idempotency-key' } }]);

  const record = await farm.runs.get(run_id);
  const [first = '', second = ''] = await farm.groups.open(run_id);
  expect(await get(`/v1/rollouts/${first}`)).toMatchObject({ body: { status: 'waiting' } });
  const poll = get(`/v1/runs/${run_id}/results?wait_seconds=60`);
  if (record) await commitRollout(farm, record, first);
  const batch = await poll;
  expect(batch.body).toMatchObject({ results: [{ rollout_id: first, reward: 1 }] });
  const { last_id } = batch.body;
  expect((await get(`/v1/runs/${run_id}/results?after=${last_id}`)).body).toEqual({
    results: [],
    unreadable: [],
    last_id,
  });
  expect((await get(`/v1/rollouts/${first}`)).body).toMatchObject({ status: 'done', result: { reward: 1 } });
  expect((await get(`/v1/rollouts/${first}/trajectory`)).body).toMatchObject({ exit_status: 'submitted' });
  expect((await get(`/v1/rollouts/${second}/trajectory`)).status).toBe(404);
  expect((await get(`/v1/runs/${run_id}`)).body).toMatchObject({ left: 2, counts: { committed: 1 } });

  const cancelled = await post(url, { rollouts: [second] }, { path: `/v1/runs/${run_id}/cancel` });
  expect(cancelled.status).toBe(200);
  expect([...(await farm.cancel.isCancelled([first, second])).keys()]).toEqual([second]);
  expect(await again()).toMatchObject({ run_id, cancelled: null });
  await farm.cancel.cancelRun(run_id, 'lease');
  expect(await again()).toMatchObject({ run_id, cancelled: 'lease' });
});

test('cancelling a group by its instance does not affect other groups of the run', async () => {
  const { url, farm } = await testGateway();
  const body = { instances: [instance, { ...instance, instance_id: 'b-1' }], group_size: 2, run: RUN };
  const submitted = await post(url, body, { path: '/v1/runs' });
  const { run_id } = (await submitted.json()) as { run_id: string };
  const cancel = (groups: string[]) => ask(`${url}/v1/runs/${run_id}/cancel`, 'POST', { groups });
  expect(await cancel(['b-1', 'c-1'])).toMatchObject({ status: 400, body: { error: { field: 'groups' } } });
  const open = await farm.groups.open(run_id);
  expect([...(await farm.cancel.isCancelled(open)).keys()]).toEqual([]);
  expect((await cancel(['b-1'])).body).toEqual({ cancelled: ['b-1'] });
  expect([...(await farm.cancel.isCancelled(open)).keys()].toSorted()).toEqual([
    `${run_id}.b-1.0`,
    `${run_id}.b-1.1`,
  ]);
});

test('a plan forecasts a run from the history of the farm, and queues nothing', async () => {
  const { url, farm } = await testGateway();
  const instances = [instance, { ...instance, instance_id: 'new-1' }];
  const body = { instances, group_size: 4, run: RUN };
  const plan = async () => (await post(url, body, { path: '/v1/runs?plan=true' })).json();
  const nothing = { slots: 0, seconds: null, tokens: null, cost: null };
  expect(await plan()).toEqual({ forecast: { rollouts: 8, instances: 2, unknown: 2, ...nothing } });
  expect(await farm.runs.list()).toEqual([]);

  const first = await post(url, { ...body, instances: [instance] }, { path: '/v1/runs' });
  const { run_id } = (await first.json()) as { run_id: string };
  const record = await farm.runs.get(run_id);
  const [rollout = ''] = await farm.groups.open(run_id);
  const [name = ''] = await farm.runs.instanceIds(run_id);
  const { family = 'custom' } = (await farm.runs.getInstance(run_id, name)) ?? {};
  const none = { queued: 0, image: 0, sandbox: 0, model: 0, command: 0, patch: 0 };
  const seconds = { ...none, agent: 90, evaluation: 10, total: 100 };
  const tokens = { prompt: 1000, completion: 50 };
  if (record) await commitRollout(farm, record, rollout, { family, seconds, tokens });
  await farm.registry.beat({
    ...{ worker: 'w', node: 'n', runtime: 'rootfs', slots: 2, active: 0 },
    ...{ started_at: 1, metrics: null, paused: null },
  });
  const time = expect.closeTo(400, 3);
  const known = { slots: 2, seconds: { expected: time, low: time, high: time, ideal: time }, cost: null };
  const forecast = {
    rollouts: 8,
    instances: 2,
    unknown: 1,
    ...known,
    tokens: { prompt: 8000, completion: 400 },
  };
  expect(await plan()).toEqual({ forecast });

  const submitted = await post(url, { ...body, instances: instances.toReversed() }, { path: '/v1/runs' });
  const { run_id: next } = (await submitted.json()) as { run_id: string };
  const { body: detail } = await ask(`${url}/v1/runs/${next}`, 'GET');
  expect(detail).toMatchObject({ order: 'longest', forecast });
});

const BAD = { agent: { step_limit: 'x' } };

test.each([
  ['POST', '/v1/runs', { instances: [] }, 400, 'instances'],
  ['POST', '/v1/runs', { instances: ['who__knows-1'], run: RUN }, 404, 'instances.0'],
  ['POST', '/v1/runs', { instances: [{ ...instance, repo: 3 }], run: RUN }, 422, 'instances.0.repo'],
  ['POST', '/v1/runs', { instances: [instance] }, 422, 'run.policy.urls'],
  ['POST', '/v1/runs', { instances: [instance], budget_tokens: 5 }, 400, 'budget_tokens'],
  ['POST', '/v1/runs', { instances: [instance], run: { agnet: {} } }, 422, 'run.agnet'],
  ['POST', '/v1/runs', { instances: [instance], run: { ...RUN, ...BAD } }, 422, 'run.agent.step_limit'],
  ['POST', '/v1/runs', { instances: [instance], group_size: 0, run: RUN }, 400, 'group_size'],
  ['POST', '/v1/runs', { instances: [instance], run: RUN, more: 1 }, 400, 'more'],
  ['POST', '/v1/runs', { instances: [{}], run: RUN }, 422, 'instances.0.instance_id'],
  ['POST', '/v1/runs?plan=yes', { instances: [instance], run: RUN }, 400, 'plan'],
  ['POST', '/v1/runs', { instances: [instance], run: { ...RUN, order: 'x' } }, 422, 'run.order'],
  ['POST', '/v1/runs', { instances: [instance, instance], run: RUN }, 422, 'instances.1'],
  ['GET', '/v1/runs/r0', undefined, 404, 'run'],
  ['GET', '/v1/runs/..%2F', undefined, 400, 'run'],
  ['GET', '/v1/runs/r0/results?after=x', undefined, 400, 'after'],
  ['POST', '/v1/runs/r0/cancel', {}, 404, 'run'],
  ['GET', '/v1/runs/r0/groups', undefined, 404, 'run'],
  ['POST', '/v1/runs', { until: { groups: 1 }, run: RUN }, 422, 'instances'],
  ['POST', '/v1/runs', { instances: [instance], until: { groupz: 1 }, run: RUN }, 422, 'run.until.groupz'],
  ['POST', '/v1/runs', { instances: [instance], until: { groups: 1 }, run: RUN }, 422, 'run.until.keep'],
  ['GET', '/v1/rollouts/r0', undefined, 404, 'rollout'],
  ['GET', '/v1/rollouts/r0.a.0', undefined, 404, 'run'],
])('%s %s %j: %i', async (method, path, body, status, field) => {
  const { url } = await testGateway();
  const reply = await ask(`${url}${path}`, method, body);
  const { error } = reply.body;
  expect([reply.status, error.field, error.message !== '']).toEqual([status, field, true]);
});

test('rows without a column instance_id get the ids that a dataset file gives them', async () => {
  const { url, farm } = await testGateway();
  // Rows of families that need files are excluded, because only settings of `serve` name the files.
  const rows = Object.values(FAMILY_ROWS).filter(
    (one) => one.instance_id === undefined && !('problems' in toInstance('row', one)),
  );
  expect(rows.map((one) => Object.keys(one)[0])).toEqual(expect.arrayContaining(['repo_name', 'org']));
  const file = join(temporaryFolder('runs'), 'rows.jsonl');
  const distinct = [...new Map(rows.map((one) => [openRow('row', one).id, one])).values()];
  await writeFile(file, distinct.map((one) => `${JSON.stringify(one)}\n`).join(''));
  const { instances } = await readDataset(file);

  const submitted = await post(url, { instances: distinct, run: RUN }, { path: '/v1/runs' });
  expect(submitted.status, await submitted.clone().text()).toBe(201);
  const { run_id } = (await submitted.json()) as { run_id: string };
  const ids = [...(await farm.results.groups(run_id)).keys()];
  expect(ids.toSorted()).toEqual(instances.map(({ instance_id }) => instance_id).toSorted());
});

test('options of a collection are refused with the alternative', async () => {
  const { url } = await testGateway();
  for (const [option, remedy] of [
    [{ until_resolved: 1 }, /swefarm submit --output FILE/],
    [{ sets: {} }, /a run for each set/],
    [{ longest_first: 'x' }, /run.order is longest/],
  ] as const) {
    const reply = await post(url, { instances: [instance], run: RUN, ...option }, { path: '/v1/runs' });
    const { error } = (await reply.json()) as { error: { message: string } };
    expect([reply.status, error.message]).toEqual([400, expect.stringMatching(remedy)]);
  }
});

const CARD = {
  ...{ card: 1, name: 'own', version: '1', description: 'a toy', bundle: { name: 'own' } },
  ...{ needs: { libc: 'none' }, api: { dialects: ['chat'] }, command: ['{bundle}/x'] },
  ends: [{ exit: 'any', status: 'submitted' }],
};

test('a caller names a shipped agent, and sends a card only where the operator allows it', async () => {
  const submit = async ({ url }: { url: string }, agent: object) => {
    const body = { instances: [instance], run: { ...RUN, agent } };
    const answer = await post(url, body, { path: '/v1/runs' });
    return { status: answer.status, body: (await answer.json()) as { run_id: string; error?: object } };
  };
  const strict = await testGateway();
  const named = await submit(strict, { type: 'codex', options: { compact: true } });
  expect(named.status).toBe(201);
  expect((await strict.farm.runs.get(named.body.run_id))?.agent).toMatchObject({
    ...{ type: 'installed', options: { compact: true } },
    card: { name: 'codex' },
  });
  expect(await submit(strict, { type: 'codx' })).toMatchObject({ status: 422 });
  const refused = { status: 403, body: { error: { code: 'card_forbidden', field: 'run.agent.card' } } };
  expect(await submit(strict, { card: CARD })).toMatchObject(refused);
  const open = await testGateway({ gateway_agent_cards: true });
  const own = await submit(open, { card: CARD });
  expect((await open.farm.runs.get(own.body.run_id))?.agent.card?.name).toBe('own');
  expect(await submit(open, { card: '/etc/passwd' })).toMatchObject(refused);
});
