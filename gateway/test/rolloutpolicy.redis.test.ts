/** Tests rows that name a policy for their own rollout. */
import { Secret } from '@swefarm/shared';
import { until } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { ask, testGateway } from './gateway.ts';
import { finish, INSTANCE, POLICY, post, row, untilQueued } from './gym.ts';
import { failed, judged, startPlayer } from './player.ts';
import { gate } from './trainer.ts';

const OPERATOR = { policy: { urls: ['http://127.0.0.1:9/v1'], model: 'm', extra_body: { top_logprobs: 1 } } };
const bare = { policy_base_url: undefined, policy_model_name: undefined };

type Jobs = Awaited<ReturnType<typeof testGateway>>['farm'];
const policies = async (farm: Jobs) =>
  (await farm.queue().getJobs(['prioritized', 'waiting']))
    .toSorted((a, b) => a.data.rollout_index - b.data.rollout_index)
    .map(({ data }) => ({ run: data.run_id, needs: data.needs, policy: data.policy }));

test('rows with endpoints, headers and fields of their own share a run', async () => {
  const { url, farm } = await testGateway({ policy_api_key: new Secret('operators-key') }, OPERATOR);
  const own = [
    { urls: 'http://127.0.0.1:10/v1', headers: { 'X-Session-ID': 'a' }, extra_body: { cache_salt: 's1' } },
    { urls: ['http://127.0.0.1:9/v1'] },
    undefined,
  ];
  const asked = own.map((policy, index) => post(url, row({ ...bare, policy, _ng_rollout_index: index })));
  await untilQueued(farm, 3);
  const queued = await policies(farm);
  expect(new Set(queued.map(({ run }) => run)).size).toBe(1);
  expect(queued.filter(({ policy }) => policy === undefined)).toMatchObject([{ needs: undefined }]);
  const foreign = queued.find(({ policy }) => policy?.urls?.[0] === 'http://127.0.0.1:10/v1');
  expect(foreign).toMatchObject({
    needs: 4,
    policy: { headers: { 'X-Session-ID': 'a' }, extra_body: { cache_salt: 's1' }, api_key_ref: null },
  });
  // The operator's key is sent only to origins that the operator names.
  const same = queued.find(({ policy }) => policy?.urls?.[0] === 'http://127.0.0.1:9/v1');
  expect((await farm.secrets.get(same?.policy?.api_key_ref ?? ''))?.origins).toEqual(['http://127.0.0.1:9']);
  const [run] = await farm.runs.list();
  expect(run?.policy).toMatchObject({ ...OPERATOR.policy, headers: {} });

  // Lost jobs are made again from the records.
  const ids = await farm.groups.open(run?.run_id ?? '');
  await farm.jobs.drop(ids);
  if (run) await farm.jobs.enqueue(run, ids);
  expect(await policies(farm)).toEqual(queued);
  await finish(farm);
  for (const reply of await Promise.all(asked)) expect(reply.status).toBe(200);
});

test('a rollout that replaces a failed one has the same policy', async () => {
  const { url, farm } = await testGateway({ gateway_failures: 'nemo-rl-sync' }, OPERATOR);
  const seen: unknown[] = [];
  const { seen: begun } = startPlayer(farm, async (nth, id) => {
    seen.push((await farm.queue().getJob(id))?.data.policy?.headers);
    return nth === 0 ? failed('policy_unreachable') : judged(1);
  });
  const reply = await post(url, row({ ...bare, policy: { headers: { 'x-smg-routing-key': 'k' } } }));
  expect([reply.status, begun.length]).toEqual([200, 2]);
  expect(seen).toEqual([{ 'x-smg-routing-key': 'k' }, { 'x-smg-routing-key': 'k' }]);
});

test('the first row gives the run its endpoints if the operator names none', async () => {
  const { url, farm } = await testGateway();
  const policy = (port: number) => ({ urls: `http://127.0.0.1:${port}/v1`, model: 'lora-v3', version: '3' });
  const asked = [9, 10].map((port, index) =>
    post(url, row({ ...bare, policy: policy(port), policy_api_key: 'row-key', _ng_rollout_index: index })),
  );
  await untilQueued(farm, 2);
  const queued = await policies(farm);
  const keys = queued.map(({ policy: one }) => farm.secrets.get(one?.api_key_ref ?? ''));
  expect((await Promise.all(keys)).map((key) => key?.origins).toSorted()).toEqual(
    queued.map(({ policy: one }) => [new URL(one?.urls?.[0] ?? '').origin]).toSorted(),
  );
  const runs = await farm.runs.list();
  expect(runs).toMatchObject([{ policy: { model: 'lora-v3', version: '3' } }]);
  // A row that names only the same model has no endpoints.
  const named = { policy: { model: 'lora-v3', version: '3' }, policy_api_key: 'row-key' };
  const refused = await post(url, row({ ...bare, ...named, _ng_rollout_index: 2 }));
  expect([refused.status, await refused.text()]).toEqual([422, expect.stringContaining('policy_base_url')]);
  expect(await policies(farm)).toHaveLength(2);
  await finish(farm);
  await Promise.all(asked);
});

test('single samples with different endpoints, headers and fields share a run', async () => {
  const { url, farm } = await testGateway({ policy_api_key: new Secret('operators-key') }, OPERATOR);
  const sample = (request_id: string, policy: object) =>
    ask(`${url}/v1/rollouts`, 'POST', { request_id, instance: INSTANCE, run: { policy }, wait_seconds: 0 });
  const salt = (cache_salt: string) => ({
    extra_body: { cache_salt },
    headers: { 'x-session-id': cache_salt },
  });
  await sample('a', { ...salt('a'), urls: ['http://127.0.0.1:10/v1'] });
  await sample('b', salt('b'));
  await sample('c', {});
  const queued = await policies(farm);
  expect(new Set(queued.map(({ run }) => run)).size).toBe(1);
  expect(queued.map(({ policy }) => policy)).toEqual([
    { ...salt('a'), urls: ['http://127.0.0.1:10/v1'], api_key_ref: null },
    { ...salt('b'), urls: null, api_key_ref: null },
    undefined,
  ]);
  expect((await farm.runs.list())[0]?.policy).toMatchObject({ ...OPERATOR.policy, headers: {} });
  for (const [policy, field] of [
    [{ headers: { cookie: 'x' } }, 'run.policy.headers.cookie'],
    [{ urls: ['nowhere'] }, 'run.policy.urls.0'],
  ] as const)
    expect(await sample('d', policy)).toMatchObject({ status: 422, body: { error: { field } } });
});

test('a trainer that resumes at another URL restarts only unfinished rollouts', async () => {
  const { url, farm } = await testGateway();
  const rest = gate();
  const { seen } = startPlayer(farm, (nth, id) => (nth === 0 ? judged(1) : rest.resolved(nth, id)));
  const sample = async (request_id: string, port: number, over: object = {}, wait_seconds = 0) => {
    const policy = { urls: [`http://127.0.0.1:${port}/v1`], model: 'm', version: '3', ...over };
    const asked = { request_id, instance: INSTANCE, run: { policy }, wait_seconds };
    return (await ask(`${url}/v1/rollouts`, 'POST', asked)).body;
  };
  const ended = await sample('a', 9, {}, 60);
  const waiting = await sample('b', 9);
  await until(async () => seen.length === 2);
  // The trainer restarts: its server has another port, and its router sends another key.
  const router = { headers: { 'x-smg-routing-key': 'k' }, extra_body: { cache_salt: 's' } };
  expect(await sample('a', 10, router)).toEqual(ended);
  expect(await sample('b', 9, router)).toEqual(waiting);
  const anew = await sample('b', 10, router);
  expect(anew.rollout_id).not.toBe(waiting.rollout_id);
  expect(await sample('b', 10)).toEqual(anew);
  expect(await farm.cancel.isCancelled([waiting.rollout_id, anew.rollout_id])).toEqual(
    new Map([[waiting.rollout_id, 'orphan']]),
  );
  const job = await farm.queue().getJob(anew.rollout_id);
  expect(job?.data.policy).toMatchObject({ urls: ['http://127.0.0.1:10/v1'], ...router });
  // A request with another setting of the run starts another rollout.
  expect((await sample('a', 10, { version: '4' })).rollout_id).not.toBe(ended.rollout_id);
  rest.open();
  expect(await sample('b', 10, {}, 60)).toMatchObject({ status: 'done', rollout_id: anew.rollout_id });
});

test.each([
  ['urls', { urls: 'nowhere' }, 'policy.urls'],
  ['a URL with a password', { urls: ['http://u:p@127.0.0.1:9/v1'] }, 'policy.urls.0'],
  ['a header of the client', { headers: { Host: 'x' } }, 'policy.headers.Host'],
  ['a key', { headers: { Authorization: 'Bearer x' } }, 'policy.headers.Authorization'],
  ['another key', { headers: { 'x-api-key': 'x' } }, 'policy.headers.x-api-key'],
  ['a value over two lines', { headers: { 'x-a': 'b\r\nhost: c' } }, 'policy.headers.x-a'],
  ['an unknown field', { header: {} }, 'policy.header'],
])('%s of a policy is refused by field', async (_what, policy, field) => {
  const { url } = await testGateway();
  const reply = await post(url, row({ ...POLICY, policy }));
  const { error } = (await reply.json()) as { error: { field: string } };
  expect([reply.status, error.field]).toEqual([400, field]);
});
