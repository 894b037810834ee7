/** Groups over HTTP, and a run that draws groups until enough have both outcomes. */

import { type Farm, openFarm, parseRolloutId, type RunRecord } from '@swefarm/shared';
import { bareInstance } from '@swefarm/testkit';
import { commitRollout } from '@swefarm/trajectories/test/commitrollout.ts';
import { expect, test } from 'vitest';
import { ask, type TestGateway, testGateway } from './gateway.ts';
import { INSTANCE, post, RUN } from './gym.ts';

const INSTANCES = Array.from({ length: 120 }, (_, at) => bareInstance({ instance_id: `a__b-${at}` }));
const SIZE = 4;

/** Scripted outcomes: of three instances, one is mixed, one is never solved, and one loses a rollout or is solved always. */
const kindOf = (instanceId: string): number => Number(instanceId.split('-').at(-1)) % 3;

function outcomeOf(id: string) {
  const { instanceId, index } = parseRolloutId(id);
  const kind = kindOf(instanceId);
  const failure = { stage: 'policy', class: 'policy_slow', message: 'm', attempts: 2 } as const;
  if (kind === 2 && index === 1 && Number(instanceId.split('-').at(-1)) % 2 === 0)
    return { outcome: 'failed', resolved: null, reward: null, failure } as const;
  const resolved = kind === 0 ? index % 2 === 0 : kind === 2;
  return { resolved, reward: resolved ? 1 : 0, family: 'custom' };
}

/** Plays open rollouts, the last ones first, until none is left or `most` are played. */
async function play(farm: Farm, record: RunRecord, most = Number.POSITIVE_INFINITY): Promise<void> {
  for (let played = 0; played < most; played++) {
    const id = (await farm.groups.open(record.run_id)).at(played % 2 === 0 ? -1 : 0);
    if (id === undefined) return;
    await commitRollout(farm, record, id, outcomeOf(id));
  }
}

const UNTIL = { groups: 32, keep: 'mixed', max: 115, seed: 5 };

async function submitDraws({ url, farm }: TestGateway, until: object = UNTIL) {
  const body = { until, group_size: SIZE, run: RUN };
  const headers = { 'idempotency-key': `step ${JSON.stringify(until)}` };
  const submitted = await post(url, body, { path: '/v1/runs', headers });
  const { run_id, rollouts } = (await submitted.json()) as { run_id: string; rollouts: number };
  const record = await farm.runs.get(run_id);
  if (!record) throw new Error(`no run ${run_id}`);
  return { record, rollouts, status: submitted.status };
}

/** Reads all ended groups in small pages. */
async function readGroups(url: string, run: string, keep = 'all') {
  const ids: string[] = [];
  for (let after = '0'; ; ) {
    const query = `after=${after}&count=7&keep=${keep}`;
    const { body } = await ask(`${url}/v1/runs/${run}/groups?${query}`, 'GET');
    for (const group of body.groups) {
      expect(group.results).toHaveLength(SIZE);
      ids.push(group.instance_id);
    }
    if (body.done) return ids;
    after = body.last_id;
  }
}

test('32 mixed groups need exactly the expected draws, also after all processes ended', {
  timeout: 120_000,
}, async () => {
  const made = await testGateway({}, {}, (farm) => farm, INSTANCES);
  const { record, rollouts, status } = await submitDraws(made);
  expect([status, rollouts]).toEqual([201, 32 * SIZE]);
  await play(made.farm, record, 150);
  const planned = (await made.farm.runs.draws(record.run_id)).map((draw) => draw.instance_id);

  // A second gateway and farm take over; the repeated submit is the same run.
  await made.gateway[Symbol.asyncDispose]();
  const again = await testGateway(made.config, {}, (farm) => farm, INSTANCES);
  expect(await submitDraws(again)).toMatchObject({ status: 200, record: { run_id: record.run_id } });
  await using farm = await openFarm(made.config, 'producer');
  await play(farm, record);

  const mixed = planned.filter((id) => kindOf(id) === 0);
  const last = planned.indexOf(mixed[31] ?? '');
  const groups = await readGroups(again.url, record.run_id);
  expect(groups.toSorted()).toEqual(planned.slice(0, last + 1).toSorted());
  expect((await readGroups(again.url, record.run_id, 'selected')).toSorted()).toEqual(
    mixed.slice(0, 32).toSorted(),
  );
  const detail = (await ask(`${again.url}/v1/runs/${record.run_id}`, 'GET')).body;
  expect(detail).toMatchObject({ left: 0, counts: { drawn: last + 1, selected: 32 } });
  const { uniform, short } = detail.counts.dropped;
  expect(uniform + short).toBe(last + 1 - 32);
  expect(detail.pass_rate).toMatchObject({ groups: last, covered: 1 });
  expect(detail.pass_rate.low).toBeLessThan(0.5);
  expect(detail.pass_rate.high).toBeGreaterThan(0.48);
});

test('a curriculum draws by the outcomes of earlier runs, and repeats its draws', {
  timeout: 120_000,
}, async () => {
  const made = await testGateway({}, {}, (farm) => farm, INSTANCES);
  const all = await submitDraws(made, { groups: 120, keep: 'all', max: 120 });
  await play(made.farm, all.record);
  const { record } = await submitDraws(made, {
    ...UNTIL,
    groups: 20,
    curriculum: { band: [0.2, 0.8], recheck: 0, explore: 0 },
  });
  expect(record.until?.strata).toMatchObject({
    ...{
      band: { instances: 40, rate: 0.5 },
      hard: { instances: 40, rate: 0 },
      easy: { instances: 20, rate: 1 },
    },
  });
  await play(made.farm, record);
  const { body } = await ask(`${made.url}/v1/runs/${record.run_id}`, 'GET');
  expect(body.counts).toMatchObject({ selected: 20 });
  expect(body.counts.drawn).toBeLessThan(24);
});

test('groups of an open run are refused', async () => {
  const { url, farm } = await testGateway();
  const submitted = await post(url, { instances: [INSTANCE], run: RUN }, { path: '/v1/runs' });
  const { run_id } = (await submitted.json()) as { run_id: string };
  const record = await farm.runs.get(run_id);
  if (record) await farm.runs.create({ ...record, run_id: 'open', open: true }, []);
  const { status, body } = await ask(`${url}/v1/runs/open/groups`, 'GET');
  expect([status, body.error.field]).toEqual([400, 'run']);
});
