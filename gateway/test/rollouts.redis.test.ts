/** Tests `POST /v1/rollouts` and the samples of rollouts, with the requests of the Python client. */
import { until } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { ask, testGateway } from './gateway.ts';
import { INSTANCE, post, RUN } from './gym.ts';
import { failed, judged, startPlayer } from './player.ts';
import { gate } from './trainer.ts';

const request = (over: object = {}) => ({
  ...{ request_id: 'step-1/3', instance: INSTANCE, run: { ...RUN, kind: 'training' }, wait_seconds: 0 },
  ...over,
});

const CANCELLED = { outcome: 'cancelled', resolved: null, reward: null, reward_row: 'cancelled' } as const;

const ints = (text: string): number[] => {
  const bytes = Buffer.from(text, 'base64');
  return Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readInt32LE(at * 4));
};

test('repeated requests share one rollout, whose answer has the stored ids', async () => {
  const { url, farm } = await testGateway();
  const rest = gate();
  const player = startPlayer(farm, rest.resolved);
  const first = await ask(`${url}/v1/rollouts`, 'POST', request());
  expect(first).toMatchObject({ status: 200, body: { status: 'waiting' } });
  await until(async () => player.seen.length === 1);
  const waiting = ask(`${url}/v1/rollouts`, 'POST', request({ wait_seconds: 60 }));
  rest.open();
  const done = (await waiting).body;
  expect(done).toMatchObject({
    ...{ status: 'done', rollout_id: first.body.rollout_id, truncated: false, missing: null },
    result: { reward: 1, outcome: 'judged' },
  });
  const trajectory = (await ask(`${url}/v1/rollouts/${done.rollout_id}/trajectory`, 'GET')).body;
  const [segment] = done.segments;
  const ids: number[] = [];
  for (const { tokens } of trajectory.turns) ids.push(...tokens.prompt_suffix, ...tokens.generation);
  expect([...ints(segment.prompt_ids), ...ints(segment.response_ids)]).toEqual(ids);
  const response = ints(segment.response_ids);
  for (const [at, [start, stop, finish]] of segment.turns.entries()) {
    const { tokens, finish_reason } = trajectory.turns[at];
    expect([response.slice(start, stop), finish]).toEqual([tokens.generation, finish_reason]);
  }
  expect(segment).toMatchObject({ line: 'L1', kind: 'main', weight: 1 });
  const { status: _status, rollout_id, ...sample } = done;
  expect((await ask(`${url}/v1/rollouts/${rollout_id}/sample`, 'GET')).body).toEqual(sample);
  expect((await ask(`${url}/v1/rollouts`, 'POST', request())).body).toEqual(done);
  expect(player.seen).toHaveLength(1);
});

test('another request id starts another rollout; a failed one has its reason', async () => {
  const { url, farm } = await testGateway();
  startPlayer(farm, (nth) => (nth === 0 ? failed('policy_unreachable') : judged(0)));
  const lost = (await ask(`${url}/v1/rollouts`, 'POST', request({ wait_seconds: 60 }))).body;
  expect(lost).toMatchObject({
    ...{ status: 'done', segments: [] },
    result: { outcome: 'failed', reward: null, failure: { class: 'policy_unreachable' } },
  });
  const other = await ask(`${url}/v1/rollouts`, 'POST', request({ request_id: 'b', wait_seconds: 60 }));
  expect(other.body).toMatchObject({ status: 'done', result: { reward: 0 } });
  expect(other.body.rollout_id).not.toBe(lost.rollout_id);
  expect((await ask(`${url}/v1/rollouts`, 'POST', request({ wait_seconds: 60 }))).body).toEqual(lost);
});

test('a rollout is cancelled after the grace if its caller stays away', async () => {
  const { url, farm } = await testGateway({ gateway_collector_grace_seconds: 0.3 });
  const never = gate();
  const player = startPlayer(farm, never.resolved);
  const { rollout_id } = (await ask(`${url}/v1/rollouts`, 'POST', request())).body;
  await until(async () => (await farm.cancel.isCancelled([rollout_id])).get(rollout_id) === 'orphan');
  const cut = new AbortController();
  const body = request({ request_id: 'killed', wait_seconds: 600 });
  const killed = post(url, body, { path: '/v1/rollouts', signal: cut.signal }).catch(() => undefined);
  await until(async () => player.seen.length === 2);
  cut.abort();
  await killed;
  const [, id = ''] = player.seen;
  await until(async () => (await farm.cancel.isCancelled([id])).has(id));
  never.open();
});

test('the request id of a cancelled rollout can be used again after its answer', async () => {
  const { url, farm } = await testGateway();
  startPlayer(farm, (nth) => (nth === 0 ? CANCELLED : judged(1)));
  const ended = (await ask(`${url}/v1/rollouts`, 'POST', request({ wait_seconds: 60 }))).body;
  expect(ended).toMatchObject({ status: 'done', result: { outcome: 'cancelled', reward: null } });
  await until(async () => {
    const { body } = await ask(`${url}/v1/rollouts`, 'POST', request({ wait_seconds: 60 }));
    return body.result?.reward === 1 && body.rollout_id !== ended.rollout_id;
  });
});

test('unplayable settings and instances are refused with the name of the field', async () => {
  const { url } = await testGateway();
  const refused = async (over: object) => {
    const { status, body } = await ask(`${url}/v1/rollouts`, 'POST', request(over));
    return [status, body.error.field];
  };
  expect(await refused({ run: { ...RUN, agent: { steps: 1 } } })).toEqual([422, 'run.agent.steps']);
  expect(await refused({ run: {} })).toEqual([422, 'run.policy.urls']);
  expect(await refused({ run: { ...RUN, group_size: 4 } })).toEqual([422, 'run.group_size']);
  expect(await refused({ instance: 'who__knows-1' })).toEqual([404, 'instance']);
  expect(await refused({ instance: { ...INSTANCE, FAIL_TO_PASS: 5 } })).toEqual([
    422,
    'instance.FAIL_TO_PASS',
  ]);
  expect(await refused({ seed: 1 })).toEqual([400, 'seed']);
});
