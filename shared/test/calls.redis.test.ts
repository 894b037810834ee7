import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { newId } from '../src/index.ts';
import { testFarm, testInstance, testRun } from './farm.ts';

const LIFE = 60_000;
const GRACE = 30_000;
const ITEM = 'a__b.c-1';

async function setup() {
  const farm = await testFarm();
  const run = testRun({ open: true });
  await farm.runs.create(run, []);
  await farm.runs.append(run.run_id, testInstance(ITEM));
  const gateway = await farm.calls.enlist(`h:${newId()}`);
  const open = async (fingerprint: string, by = gateway, named = false) => {
    const opened = await farm.calls.open({ fingerprint, nonce: newId(), named }, by, run, ITEM, LIFE);
    if (opened.status !== 'opened') throw new Error(opened.status);
    return opened;
  };
  const claim = (fingerprint: string, by = gateway, named = false) =>
    farm.calls.claim({ fingerprint, nonce: newId(), named }, by);
  return { farm, run, gateway, open, claim, [Symbol.asyncDispose]: () => farm[Symbol.asyncDispose]() };
}

test('an open run grows with indices and groups, and refuses another instance of an id', async () => {
  await using at = await setup();
  const first = await at.open('f1');
  const second = await at.open('f1');
  expect([first, second].map(({ rollout_id }) => rollout_id)).toEqual(
    await at.farm.groups.open(at.run.run_id),
  );
  expect((await at.farm.results.groups(at.run.run_id)).get(ITEM)).toMatchObject({ left: 2, usable: 0 });
  expect(await at.farm.runs.append(at.run.run_id, testInstance(ITEM))).toBe('appended');
  expect(await at.farm.runs.append(at.run.run_id, { ...testInstance(ITEM), patch: 'x' })).toBe('differs');
  expect(await at.farm.runs.append('r0', testInstance(ITEM))).toBe('gone');
  const request = { fingerprint: 'f', nonce: newId(), named: false };
  const gone = await at.farm.calls.open(request, at.gateway, testRun(), ITEM, LIFE);
  expect(gone).toEqual({ status: 'gone' });
});

test('a group with a lead is queued before waiting groups, but not before other runs', async () => {
  await using at = await setup();
  const { farm, run } = at;
  const leads = { early: 0, usual: 0, short: -512, long: 512, longest: 512 };
  for (const [id, lead] of Object.entries(leads)) {
    await farm.runs.append(run.run_id, testInstance(id));
    const request = { fingerprint: id, nonce: newId(), named: false };
    const opened = await farm.calls.open(request, at.gateway, run, id, LIFE, { lead });
    if (opened.status === 'opened') await farm.jobs.enqueue(run, [opened.rollout_id]);
  }
  const jobs = await farm.queue().getJobs(['prioritized'], 0, -1, true);
  const order = jobs.map(({ data }) => data.instance_id);
  expect(order).toEqual(['early', 'long', 'longest', 'usual', 'short']);
  expect(jobs.every(({ priority }) => priority > 2 ** 20)).toBe(true);
});

test('only an orphan is taken over, once; connected siblings never', async () => {
  await using at = await setup();
  const calls = [await at.open('same'), await at.open('same'), await at.open('same')];
  expect(await at.claim('same')).toEqual({ status: 'none' });
  await at.farm.calls.drop(calls[1]?.call_id ?? '', at.gateway, GRACE);
  await at.farm.calls.drop(calls[0]?.call_id ?? '', at.gateway, GRACE);
  const taken = [await at.claim('same'), await at.claim('same'), await at.claim('same')];
  const ids = taken.map((claim) => (claim.status === 'attached' ? claim.rollout_id : claim.status));
  expect(ids.toSorted()).toEqual(['none', calls[0]?.rollout_id, calls[1]?.rollout_id].toSorted());
  expect(await at.claim('another')).toEqual({ status: 'none' });
});

test('a call whose reply was lost is found by its nonce, and released', async () => {
  await using at = await setup();
  const { calls } = at.farm;
  const first = { fingerprint: 'blip', nonce: newId(), named: false };
  const opened = await calls.open(first, at.gateway, at.run, ITEM, LIFE);
  // A command sent again opens no second rollout.
  expect(await calls.open(first, at.gateway, at.run, ITEM, LIFE)).toEqual(opened);
  expect(await at.farm.groups.open(at.run.run_id)).toHaveLength(1);
  await calls.abandon(first, at.gateway, GRACE);
  await calls.abandon(first, at.gateway, GRACE);
  const second = { ...first, nonce: newId() };
  const taken = await calls.claim(second, at.gateway);
  expect(taken).toMatchObject({ status: 'attached', call_id: opened.status === 'opened' && opened.call_id });
  expect(await calls.claim(second, at.gateway)).toEqual({ ...taken, age_ms: expect.any(Number) });
  // A request without a call releases nothing, nor does a request of another gateway.
  await calls.abandon({ ...first, nonce: newId() }, at.gateway, GRACE);
  await calls.abandon(first, 'another', GRACE);
  expect(await at.claim('blip')).toEqual({ status: 'none' });
  await calls.abandon(second, at.gateway, GRACE);
  expect(await at.claim('blip')).toMatchObject({ status: 'attached' });
  expect(await at.claim('blip')).toEqual({ status: 'none' });
});

test('an answered call is not given again, unless it has a name', async () => {
  await using at = await setup();
  const plain = await at.open('plain');
  await at.farm.calls.answered(plain.call_id, 0);
  expect(await at.claim('plain')).toEqual({ status: 'none' });

  const named = await at.open('id', at.gateway, true);
  const again = { fingerprint: 'id', nonce: newId(), named: true };
  expect(await at.farm.calls.open(again, at.gateway, at.run, ITEM, LIFE)).toEqual({ status: 'taken' });
  expect(await at.claim('id', at.gateway, true)).toMatchObject({ rollout_id: named.rollout_id });
  await at.farm.calls.answered(named.call_id, LIFE);
  expect(await at.claim('id', at.gateway, true)).toMatchObject({ rollout_id: named.rollout_id });
});

test('calls of a restarted gateway are orphans immediately', async () => {
  await using at = await setup();
  const address = `h:${randomUUID()}`;
  const before = await at.farm.calls.enlist(address);
  const connected = await at.open('body', before);
  expect(await at.claim('body')).toEqual({ status: 'none' });
  const after = await at.farm.calls.enlist(address);
  expect(await at.claim('body', after)).toMatchObject({ rollout_id: connected.rollout_id });
  expect(await at.claim('body', after)).toEqual({ status: 'none' });
});

test('calls of a silent gateway are taken over only after a wait', async () => {
  await using at = await setup();
  const silent = await at.farm.calls.enlist('elsewhere:1');
  const connected = await at.open('body', silent);
  // The reply is `none` while the last beat is fresh, then `wait`, then `attached`.
  let claim = await at.claim('body');
  while (claim.status !== 'attached') {
    await sleep(200);
    claim = await at.claim('body');
  }
  expect(claim.rollout_id).toBe(connected.rollout_id);
});

test('a call out of grace is not taken over, and is reported for cancellation once', async () => {
  await using at = await setup();
  const dropped = await at.open('late');
  const retained = await at.open('kept');
  await at.farm.calls.drop(dropped.call_id, at.gateway, 0);
  let expired: Awaited<ReturnType<typeof at.farm.calls.expired>> = [];
  while (expired.length === 0) {
    await at.farm.calls.beat(at.gateway);
    expired = await at.farm.calls.expired(GRACE);
    await sleep(50);
  }
  expect(expired).toEqual([{ call_id: dropped.call_id, rollout_id: dropped.rollout_id }]);
  expect(await at.claim('late')).toEqual({ status: 'none' });
  await at.farm.calls.forget([dropped.call_id]);
  expect(await at.farm.calls.expired(GRACE)).toEqual([]);

  // The end of the gateway makes its calls orphans.
  await at.farm.calls.retire(at.gateway);
  const next = await at.farm.calls.enlist('h:next');
  expect(await at.claim('kept', next)).toMatchObject({ rollout_id: retained.rollout_id });
});

test('a retry opens one new rollout, also if it is repeated', async () => {
  await using at = await setup();
  const call = await at.open('hold');
  const fresh = await at.farm.calls.retry(call.call_id, call.rollout_id);
  expect(fresh).toBe(`${at.run.run_id}.${ITEM}.1`);
  expect(await at.farm.calls.retry(call.call_id, call.rollout_id)).toBe(fresh);
  await at.farm.calls.drop(call.call_id, at.gateway, GRACE);
  expect(await at.claim('hold')).toMatchObject({ rollout_id: fresh });
  expect(await at.farm.calls.retry('none.x', call.rollout_id)).toBeNull();
});

test('calls of a dead gateway wait for their own grace', async () => {
  await using at = await setup();
  const address = `h:${randomUUID()}`;
  const dead = await at.farm.calls.enlist(address);
  const patient = { fingerprint: 'patient', nonce: newId(), named: false, graceMs: LIFE };
  const opened = await at.farm.calls.open(patient, dead, at.run, ITEM, LIFE);
  const hasty = await at.open('hasty', dead);
  await at.farm.calls.enlist(address);
  await expect
    .poll(() => at.farm.calls.expired(0), { timeout: 120_000 })
    .toEqual([{ call_id: hasty.call_id, rollout_id: hasty.rollout_id }]);
  expect(await at.claim('patient')).toMatchObject({
    status: 'attached',
    rollout_id: opened.status === 'opened' && opened.rollout_id,
  });
});
