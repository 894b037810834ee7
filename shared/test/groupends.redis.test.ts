import { expect, test } from 'vitest';
import { type Farm, openFarm, type Result, type RunRecord } from '../src/index.ts';
import { keysOf, testConfig, testFarm, testInstance, testResult, testRun } from './farm.ts';

const policy = { urls: ['http://127.0.0.1:1/v1'], model: 'm' } as RunRecord['policy'];
const until = { groups: 2, keep: 'mixed', max: 5, ahead: 0, seed: 1, curriculum: null, strata: {} } as const;

/** Commits the rollouts of a group with these rewards; null: the rollout failed. */
async function play(farm: Farm, run: RunRecord, instance_id: string, rewards: readonly (number | null)[]) {
  for (const [index, reward] of rewards.entries()) {
    const failure = { stage: 'policy', class: 'policy_slow', message: 'm', attempts: 2 } as const;
    const change: Partial<Result> =
      reward === null
        ? { outcome: 'failed', resolved: null, reward: null, exit_status: null, failure }
        : { reward, resolved: reward > 0, family: 'custom', policy_version: 'v1' };
    await farm.commit(run, testResult(run.run_id, index, { instance_id, ...change }));
  }
}

async function drawing(farm: Farm, change: Partial<NonNullable<RunRecord['until']>> = {}) {
  const names = ['a', 'b', 'c', 'd', 'e'];
  const dataset = { path: 'rows', sha256: 'ab', instances: names.length };
  const run = testRun({ group_size: 2, dataset, policy, until: { ...until, ...change } });
  const draws = names.map((instance_id) => ({
    ...{ instance_id, image: `i-${instance_id}`, sequence: 0, stratum: 'all' as const, chance: 0.2 },
  }));
  expect(await farm.runs.storeDraws(run, draws)).toHaveLength(5);
  await farm.runs.create(run, names.map(testInstance));
  return run;
}

test('an ended group is read once, with its results, in the order of ends', async () => {
  await using farm = await testFarm();
  const run = testRun({ group_size: 2, policy });
  await farm.runs.create(run, ['a', 'b', 'c', 'd'].map(testInstance));
  await play(farm, run, 'b', [1, 0]);
  await play(farm, run, 'a', [1]);
  await play(farm, run, 'c', [0, null]);
  const first = await farm.groupEnds.read(run.run_id, '0', { count: 1 });
  expect(first.groups).toMatchObject([
    { instance_id: 'b', end: 'mixed', size: 2, usable: 2, refilled: 0, reward_mean: 0.5 },
  ]);
  expect(first.groups[0]?.results.map(({ result }) => result.rollout_id)).toEqual([
    `${run.run_id}.b.0`,
    `${run.run_id}.b.1`,
  ]);
  const second = await farm.groupEnds.read(run.run_id, first.last_id);
  expect(second.groups).toMatchObject([{ instance_id: 'c', end: 'short', usable: 1, reward_mean: 0 }]);
  const waiting = farm.groupEnds.read(run.run_id, second.last_id, { keep: 'mixed', blockMs: 20_000 });
  await farm.commit(run, testResult(run.run_id, 1, { instance_id: 'a' }));
  await play(farm, run, 'd', [1, 0]);
  expect((await waiting).groups.map((group) => group.instance_id)).toEqual(['d']);
  expect((await farm.groupEnds.list(run.run_id)).map((group) => group.instance_id)).toEqual([...'bcad']);
  expect(await farm.results.counts(run.run_id)).toMatchObject({ mixed_groups: 2, drawn: 0, selected: 0 });
});

test('a run with until opens the next draw for each group that it does not select', async () => {
  await using farm = await testFarm();
  const run = await drawing(farm);
  const opened = async () => (await farm.groups.rollouts(run.run_id)).sort();
  const ids = (...names: string[]) =>
    names.flatMap((name) => [`${run.run_id}.${name}.0`, `${run.run_id}.${name}.1`]);
  expect(await opened()).toEqual(ids('a', 'b'));
  await play(farm, run, 'b', [0, 0]);
  expect(await opened()).toEqual(ids('a', 'b', 'c'));
  expect(await farm.groups.retire(run.run_id)).toBe(false);
  await play(farm, run, 'a', [1, 0]);
  expect(await opened()).toEqual(ids('a', 'b', 'c'));
  await play(farm, run, 'c', [1, null]);
  expect(await opened()).toEqual(ids('a', 'b', 'c', 'd'));
  await play(farm, run, 'd', [0, 1]);
  expect(await opened()).toEqual(ids('a', 'b', 'c', 'd'));
  expect(await farm.results.counts(run.run_id)).toMatchObject({
    drawn: 4,
    selected: 2,
    dropped: { uniform: 1, short: 1 },
  });
  expect(await farm.cancel.runCancelled(run.run_id)).toBe(null);
  const selected = await farm.groupEnds.read(run.run_id, '0', { keep: 'selected' });
  expect(selected.groups.map((group) => group.instance_id)).toEqual(['a', 'd']);
});

test('the bound ends the draws; a cancelled run draws nothing', async () => {
  await using farm = await testFarm();
  const bounded = await drawing(farm);
  for (const name of ['a', 'b', 'c', 'd', 'e']) await play(farm, bounded, name, [0, 0]);
  expect(await farm.results.counts(bounded.run_id)).toMatchObject({
    drawn: 5,
    selected: 0,
    dropped: { uniform: 5 },
  });
  expect(await farm.groups.left(bounded.run_id)).toBe(0);

  const cancelled = await drawing(farm);
  await farm.cancel.cancelRun(cancelled.run_id);
  await play(farm, cancelled, 'a', [0, 0]);
  await play(farm, cancelled, 'b', [0, null]);
  expect(await farm.results.counts(cancelled.run_id)).toMatchObject({
    drawn: 2,
    dropped: { uniform: 1, cancelled: 1 },
  });
});

test('enough groups cancel those that run ahead, and a late one is surplus', async () => {
  await using farm = await testFarm();
  const run = await drawing(farm, { ahead: 2 });
  await play(farm, run, 'd', [1, 0]);
  expect(await farm.cancel.runCancelled(run.run_id)).toBe(null);
  await play(farm, run, 'a', [1, 0]);
  expect(await farm.cancel.runCancelled(run.run_id)).toBe('early_stop');
  await play(farm, run, 'b', [1, 0]);
  await play(farm, run, 'c', [1, null]);
  expect(await farm.results.counts(run.run_id)).toMatchObject({
    drawn: 4,
    selected: 2,
    dropped: { surplus: 1, cancelled: 1 },
  });
  const totals = (await farm.results.totals()).get('collection');
  expect(totals).toMatchObject({ 'dropped:surplus': 1, mixed_groups: 3 });
});

test('a usable result counts in the pass rates of its instance, by policy version', async () => {
  const config = testConfig();
  await using farm = await openFarm(config, 'producer');
  const run = testRun({ group_size: 10, policy: { ...policy, name: 'main' } as RunRecord['policy'] });
  await farm.runs.create(run, [testInstance()]);
  for (let index = 0; index < 8; index++) {
    const change = { family: 'custom', policy_version: `v${Math.floor(index / 2)}` };
    const passed = index % 2 === 0 && index > 0;
    await farm.commit(
      run,
      testResult(run.run_id, index, { ...change, reward: passed ? 1 : 0, resolved: passed }),
    );
  }
  await farm.commit(
    run,
    testResult(run.run_id, 8, { family: 'custom', policy_version: 'v4', resolved: null, reward: 0.5 }),
  );
  await farm.commit(
    run,
    testResult(run.run_id, 9, { family: 'custom', outcome: 'failed', resolved: null, reward: null }),
  );
  const passes = await farm.passes.read({ name: 'main', model: 'm' }, 'custom');
  expect(passes.get('a__b.c-1')).toEqual([...[1, 2, 3].map((n) => [`v${n}`, 2, 1]), ['v4', 1, 0.5]]);
  expect(await keysOf(config)).toContain('passes:main:custom');
});

test('groups of draws are queued by sequence, not in the order of draws', async () => {
  await using farm = await testFarm();
  const dataset = { path: 'rows', sha256: 'ab', instances: 2 };
  const run = testRun({ group_size: 2, dataset, policy, until });
  const draws = [1, 0].map((sequence, at) => ({
    ...{ instance_id: `i${at}`, image: 'i', sequence, stratum: 'all' as const, chance: 0.5 },
  }));
  await farm.runs.storeDraws(run, draws);
  await farm.runs.create(run, ['i0', 'i1'].map(testInstance));
  await farm.jobs.enqueue(run, await farm.groups.rollouts(run.run_id));
  const next = await farm.queue().getPrioritized(0, 3);
  expect(next.map(({ data }) => data.instance_id)).toEqual(['i1', 'i1', 'i0', 'i0']);
});
