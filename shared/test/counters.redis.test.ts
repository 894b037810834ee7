import { bareFacts, rawRedis } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import {
  openFarm,
  outcomeFamilies,
  PolicyConfig,
  renderFamilies,
  versionFamilies,
  vitalFamilies,
} from '../src/index.ts';
import { MODEL_LIMIT, VERSION_WINDOW } from '../src/metrics/outcomes.ts';
import {
  claimed,
  nth,
  openRun,
  testConfig,
  testFarm,
  testInstance,
  testResult,
  testRun,
  testWorker,
} from './farm.ts';

const NONE = { resolved: null, reward: null, exit_status: null } as const;

test('outcomes, attempts, groups and findings are counted once', async () => {
  await using farm = await testFarm();
  const run = testRun({ kind: 'training' });
  await farm.runs.create(run, [testInstance(), testInstance('a__b.c-2')]);
  const id = (index: number) => `${run.run_id}.a__b.c-1.${index}`;

  // Rollout 0: a worker died, one attempt failed, the third is judged.
  await claimed(farm, id(0));
  await farm.journal.end(id(0), (await claimed(farm, id(0))).claim, {
    stage: 'policy',
    class: 'policy_silent',
    cause: 'x',
  });
  const first = testResult(run.run_id, 0, {
    ...(await claimed(farm, id(0))),
    facts: bareFacts(),
    turns: 4,
  });
  await farm.commit(run, first);
  await farm.commit(run, first);
  await farm.commit(run, { ...first, ...nth(2), worker: 'late', turns: 90 });
  // Other rollouts of the group: forged, failed after a drained attempt, and judged.
  await farm.commit(
    run,
    testResult(run.run_id, 1, { facts: bareFacts({ trust: 'forged' }), reward: 0, turns: 6 }),
  );
  await farm.journal.end(id(2), (await claimed(farm, id(2))).claim, {
    stage: null,
    class: 'drained',
    cause: null,
  });
  await claimed(farm, id(2));
  const failure = { stage: 'image', class: 'image_pull', message: 'm', attempts: 2 } as const;
  await farm.commit(
    run,
    testResult(run.run_id, 2, { ...NONE, attempt: 2, outcome: 'failed', failure, turns: 50 }),
  );
  await farm.commit(run, testResult(run.run_id, 3, { resolved: false, reward: 0, turns: 200 }));
  // A complete group of four rollouts.
  for (const index of [0, 1, 2, 3])
    await farm.commit(run, testResult(run.run_id, index, { instance_id: 'a__b.c-2', turns: 10 }));

  const text = renderFamilies(outcomeFamilies(await farm.results.totals()));
  const value = (series: string): number =>
    Number(
      text
        .split('\n')
        .find((line) => line.startsWith(`${series} `))
        ?.split(' ')
        .at(-1),
    );
  expect(value('swefarm_rollouts_total{kind="training",outcome="judged"}')).toBe(7);
  expect(value('swefarm_rollouts_total{kind="training",outcome="failed"}')).toBe(1);
  // The forged rollout does not count as resolved.
  expect(value('swefarm_rollouts_resolved_total{kind="training"}')).toBe(5);
  expect(value('swefarm_reward_total{kind="training"}')).toBe(5);
  expect(value('swefarm_rollouts_rewarded_total{kind="training"}')).toBe(7);
  expect(value('swefarm_rollout_turns_sum{kind="training"}')).toBe(4 + 6 + 200 + 40);
  expect(value('swefarm_rollout_turns_count{kind="training"}')).toBe(7);
  expect(value('swefarm_rollout_turns_bucket{kind="training",le="5"}')).toBe(1);
  expect(value('swefarm_rollout_turns_bucket{kind="training",le="150"}')).toBe(6);
  expect(value('swefarm_rollout_seconds_count{kind="training"}')).toBe(8);
  expect(value('swefarm_rollout_stage_seconds_total{kind="training",stage="agent"}')).toBe(8);
  expect(value('swefarm_tokens_total{kind="training",side="prompt"}')).toBe(800);
  expect(value('swefarm_rollouts_failed_total{kind="training",stage="image",class="image_pull"}')).toBe(1);
  expect(value('swefarm_reports_total{kind="training",trust="forged"}')).toBe(1);
  expect(value('swefarm_attempts_total{kind="training",class="lost"}')).toBe(1);
  expect(value('swefarm_attempts_total{kind="training",class="policy_silent"}')).toBe(1);
  expect(value('swefarm_attempts_total{kind="training",class="drained"}')).toBe(1);
  expect(value('swefarm_attempts_total{kind="training",class="image_pull"}')).toBe(1);
  expect(value('swefarm_attempts_total{kind="training",class="done"}')).toBe(7);
  expect(value('swefarm_groups_total{kind="training",end="complete"}')).toBe(1);
  expect(value('swefarm_groups_total{kind="training",end="short"}')).toBe(1);
  expect(value('swefarm_rollouts_total{kind="validation",outcome="judged"}')).toBe(0);
});

test('only the policy versions that committed last have counters', async () => {
  const { farm, run } = await openRun({ kind: 'training', group_size: 100 });
  const versions = Array.from({ length: VERSION_WINDOW + 3 }, (_, n) => `step-${n}`);
  for (const [index, policy_version] of versions.entries()) {
    await farm.commit(run, testResult(run.run_id, index, { policy_version }));
    // The window is ordered by Redis's clock, in milliseconds.
    const now = Date.now();
    await expect.poll(() => Date.now(), { interval: 1 }).toBeGreaterThan(now + 1);
  }
  const known = await farm.results.versionTotals();
  expect([...(known.get('training')?.keys() ?? [])]).toEqual(versions.slice(3));
  expect(renderFamilies(versionFamilies(known))).toContain(
    'swefarm_version_resolved_total{kind="training",version="step-10"} 1\n',
  );
});

test('vitals have waiting jobs by class with age, workers and usage', async () => {
  const config = testConfig();
  await using farm = await openFarm(config, 'producer');
  const job = (index: number, priority: number, age: number) => ({
    name: 'rollout',
    data: { index } as never,
    opts: { jobId: `r.i.${index}`, priority, timestamp: Date.now() - age * 1000 },
  });
  // The last priority of validation, the first of training and of collection.
  await farm
    .queue()
    .addBulk([
      job(0, 2 ** 19 - 1, 5),
      job(1, 2 ** 19 + 1, 600),
      job(2, 2 ** 19 + 9, 900),
      job(3, 2 ** 20 + 1, 0),
    ]);
  await farm.registry.beat(testWorker({ worker: 'a' }));
  await farm.registry.beat(testWorker({ worker: 'b', paused: 'disk' }));
  const vitals = await farm.vitals();
  expect(vitals).toMatchObject({
    queue: [
      { class: 'validation', waiting: 1 },
      { class: 'training', waiting: 2 },
      { class: 'collection', waiting: 1 },
    ],
    jobs: { active: 0, delayed: 0, failed: 0 },
    workers: { claiming: 1, paused: 1, busy: 2, slots: 8, lost: 0 },
    artifacts: { used_bytes: 0, artifacts: 0 },
  });
  expect(vitals.queue[1]?.oldest_seconds).toBeGreaterThanOrEqual(900);
  expect(vitals.redis.used_bytes).toBeGreaterThan(0);
  expect(vitals.redis.limit_bytes).toBeGreaterThan(vitals.redis.used_bytes);
  expect(renderFamilies(vitalFamilies(vitals))).toContain('swefarm_slots{state="free"} 6\n');
  expect(renderFamilies(vitalFamilies(null))).toMatch(/swefarm_redis_up 0\n$/);
});

test('a vanished worker is counted as lost once; one that deregisters is not', async () => {
  const config = testConfig();
  await using farm = await openFarm(config, 'producer');
  await farm.registry.beat(testWorker({ worker: 'leaves' }));
  await farm.registry.beat(testWorker({ worker: 'dies' }));
  await farm.registry.leave('leaves');
  await rawRedis(farm)('DEL', `${config.redis_prefix}:worker:dies`);
  expect(await farm.registry.list()).toEqual([]);
  await Promise.all([farm.registry.list(), farm.registry.list()]);
  expect(await farm.registry.lost()).toBe(1);
});

test('a number without a verdict is counted as scored, not as unresolved', async () => {
  const { farm, run } = await openRun({ kind: 'training' });
  for (const [index, reward] of [0.25, -1.5, 0.75].entries())
    await farm.commit(run, testResult(run.run_id, index, { resolved: null, reward }));
  await farm.commit(run, testResult(run.run_id, 3, { resolved: null, reward: null }));
  const counts = await farm.results.counts(run.run_id);
  expect(counts).toMatchObject({ resolved: 0, scored: 3, rewarded: 3, outcomes: { judged: 4 } });
  expect(counts.reward_sum).toBeCloseTo(-0.5, 9);
  const text = renderFamilies(outcomeFamilies(await farm.results.totals()));
  expect(text).toContain('swefarm_rollouts_scored_total{kind="training"} 3');
});

test('costs are counted once by price and model; models beyond the limit share a series', async () => {
  await using farm = await testFarm();
  const run = (model: string, price?: { prompt: number; completion: number }) => {
    const policy = PolicyConfig.parse({ urls: [], model, ...(price ? { price } : {}) });
    return testRun({ kind: 'collection', group_size: 8, policy });
  };
  const priced = run('first', { prompt: 0.5, completion: 2 });
  const free = run('unpriced');
  for (const one of [priced, free]) await farm.runs.create(one, [testInstance()]);
  const tokens = { prompt: 1_000_000, completion: 250_000 };
  const result = testResult(priced.run_id, 0, { tokens, resolved: true });
  await farm.commit(priced, result);
  await farm.commit(priced, result);
  await farm.commit(priced, testResult(priced.run_id, 1, { tokens, resolved: false, reward: 0 }));
  await farm.commit(free, testResult(free.run_id, 0, { tokens }));
  for (let at = 1; at < MODEL_LIMIT + 3; at++) {
    const more = run(`checkpoint "${at}"`, { prompt: 1, completion: 0 });
    await farm.runs.create(more, [testInstance()]);
    await farm.commit(more, testResult(more.run_id, 0, { tokens, resolved: false, reward: 0 }));
  }
  const lines = renderFamilies(outcomeFamilies(await farm.results.totals())).split('\n');
  const series = (name: string) => lines.filter((line) => line.startsWith(`${name}{`));
  expect(series('swefarm_cost_dollars_total')).toHaveLength(MODEL_LIMIT + 1);
  expect(lines).toEqual(
    expect.arrayContaining([
      'swefarm_cost_dollars_total{kind="collection",model="first"} 2',
      'swefarm_priced_rollouts_total{kind="collection",model="first"} 2',
      'swefarm_priced_resolved_total{kind="collection",model="first"} 1',
      'swefarm_cost_dollars_total{kind="collection",model="checkpoint \\"1\\""} 1',
      'swefarm_cost_dollars_total{kind="collection",model="other"} 3',
      'swefarm_priced_resolved_total{kind="collection",model="other"} 0',
    ]),
  );
});
