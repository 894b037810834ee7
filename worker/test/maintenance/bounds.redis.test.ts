/** Numbers out of bounds affect no other run; large runs are read in parts, and the cost to commit cancels does not grow with them. */
import { MOST } from '@swefarm/shared';
import { bareInstance, bareRun, rawRedis } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { commitCancelled } from '../../src/maintenance/commitcancelled.ts';
import { GROUP, open, redisUrl, runDuties, scene, startRun } from './farm.ts';
import { startLeash } from './leash.ts';

const HUGE = 200_000_000;

test('a run with a count of 200 million is reported once, affects no other, and can be removed', async () => {
  const at = await scene();
  const { prefix, logTexts } = at;
  const redisCall = rawRedis(at.farm);
  const byRecord = await startRun(at);
  const bySize = await startRun(at, { refills: 1, deadline_at: Date.now() - 1, min_group: 1 });
  const healthy = await startRun(at, { deadline_at: Date.now() - 1, group_size: 2 });
  const key = (run: { run_id: string }): string => `{${prefix}}:run:${run.run_id}`;
  const record = { ...byRecord.run, oversample: HUGE };
  await redisCall('SET', key(byRecord.run), JSON.stringify(record), 'KEEPTTL');
  for (const { run } of [byRecord, bySize])
    for (const field of ['size', 'left', 'refilled'])
      await redisCall('HSET', `${key(run)}:groups`, `${GROUP} ${field}`, HUGE);
  await runDuties(at);
  const { results } = await at.farm.results.read(healthy.run.run_id, '0');
  expect(results.map(({ result }) => result.reward_row)).toEqual(['deadline', 'deadline']);
  expect(logTexts.filter((text) => text.includes(byRecord.run.run_id))).toEqual([
    expect.stringMatching(/oversample: .*10000.*swefarm remove/),
  ]);
  const problem = `size of group ${GROUP} is out of bounds: ${HUGE}`;
  const matching = logTexts.filter((text) => text.includes(problem));
  expect(new Set(matching).size).toBe(1);
  for (const { run, ids } of [byRecord, bySize]) {
    await at.farm.runs.remove(run.run_id);
    expect(await at.farm.jobs.missing(ids)).toEqual(ids);
  }
  expect((await at.farm.groups.unfinishedRuns()).unreadable).toEqual([]);
});

test('a refused run leaves nothing in Redis', async () => {
  const at = await scene();
  const { prefix } = at;
  const instances = [bareInstance({ instance_id: GROUP })];
  const changes = [{ oversample: HUGE }, { group_size: 1.5 }, { ttl: Number.NaN }, { created_at: 'now' }];
  for (const change of changes) {
    const made = at.farm.runs.create({ ...bareRun(), ...change }, instances);
    await expect(made).rejects.toMatchObject({
      code: 'run_invalid',
      message: expect.stringContaining(Object.keys(change)[0] ?? ''),
    });
  }
  // More instances than the record has, and than a run of such groups may have.
  const many = Array.from({ length: 101 }, (_, at) => bareInstance({ instance_id: `i-${at}` }));
  const large = { ...bareRun(), group_size: MOST.group };
  await expect(at.farm.runs.create(large, many)).rejects.toThrow(/101 instances x .* 1000000/);
  expect(await rawRedis(at.farm)('KEYS', `{${prefix}}:run*`)).toEqual([]);
  const { run } = await startRun(at);
  for (const count of [0, -1, 1.5, HUGE]) {
    await expect(at.farm.groups.add(run.run_id, GROUP, count)).rejects.toThrow(/expected a whole number/);
  }
  expect(await at.farm.groups.left(run.run_id)).toBe(4);
});

test('the rollouts of a run are read in parts, whatever their number', async () => {
  const at = await scene();
  const run = bareRun({ group_size: 9, dataset: { path: 'p', sha256: 'a', instances: 800 } });
  const instances = Array.from({ length: 800 }, (_, at) => bareInstance({ instance_id: `i-${at}` }));
  await at.farm.runs.create(run, instances);
  const parts = await Array.fromAsync(at.farm.groups.openParts(run.run_id));
  expect(Math.max(...parts.map(({ length }) => length))).toBeLessThanOrEqual(500);
  expect(new Set(parts.flat()).size).toBe(7_200);
  expect(await at.farm.groups.left(run.run_id)).toBe(7_200);
});

test('the cost of committing cancelled rollouts does not depend on the size of the run', async () => {
  const cost = async (instances: number): Promise<number[]> => {
    await using leash = await startLeash(redisUrl());
    const at = await scene(leash.url);
    const run = bareRun({ group_size: 10, dataset: { path: 'p', sha256: 'a', instances } });
    const all = Array.from({ length: instances }, (_, at) => bareInstance({ instance_id: `i-${at}` }));
    await at.farm.runs.create(run, all);
    await at.farm.cancel.cancelRollouts([`${run.run_id}.i-0.3`, `${run.run_id}.i-0.99`]);
    await at.farm.cancel.cancelGroup(run.run_id, 'i-1');
    const duty = commitCancelled();
    const ticks: number[] = [];
    for (let tick = 0; tick < 3; tick++) {
      leash.after(Number.POSITIVE_INFINITY);
      await duty.run(at.deps, open);
      ticks.push(leash.passed());
    }
    expect((await at.farm.results.counts(run.run_id)).outcomes.cancelled).toBe(11);
    return ticks;
  };
  const [small, large] = [await cost(2), await cost(400)];
  expect(large).toEqual(small);
  // Once the cancelled rollouts are committed, a round reads no rollout.
  expect(large[1]).toBeLessThan(6);
});
