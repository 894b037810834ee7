import { expect, test } from 'vitest';
import { type Farm, PolicyConfig } from '../src/index.ts';
import { testFarm, testInstance, testResult, testRun } from './farm.ts';

const ITEM = 'a__b.c-1';
const family = 'custom' as const;
const secondsOf = (agent: number, evaluation: number) => ({
  ...{ queued: 9, image: 9, sandbox: 1, agent, model: 0, command: 0, patch: 0, evaluation },
  total: agent + evaluation + 10,
});

async function begin() {
  const farm = await testFarm();
  const run = testRun();
  await farm.runs.create(run, [testInstance(ITEM), testInstance('x')]);
  return { farm, run, read: (id: string) => readOf(farm, run.agent, id) };
}

const readOf = async (farm: Farm, agent: ReturnType<typeof testRun>['agent'], instance_id: string) => {
  const { of, prior } = await farm.history.read(agent, [{ instance_id, family }]);
  return { own: of.get(instance_id) ?? null, prior: prior(family) };
};

test('commits update mean and variance of an instance, once for each result', async () => {
  const { farm, run, read } = await begin();
  await using _farm = farm;
  expect(await read(ITEM)).toEqual({ own: null, prior: null });
  const agents = [10, 40, 70];
  for (const [index, agent] of agents.entries()) {
    const result = testResult(run.run_id, index, { family, seconds: secondsOf(agent, 9) });
    await farm.commit(run, result);
    await farm.commit(run, result);
    await farm.commit(run, { ...result, attempt: 2, worker: 'late' });
  }
  const none = { outcome: 'failed', resolved: null, reward: null } as const;
  await farm.commit(run, testResult(run.run_id, 3, { ...none, family, seconds: secondsOf(9999, 1) }));
  const logs = agents.map((agent) => Math.log(agent + 10));
  const mean = logs.reduce((sum, one) => sum + one, 0) / 3;
  const { own, prior } = await read(ITEM);
  expect(own).toMatchObject({ count: 3, seconds: 50, agentSeconds: 40, evaluationSeconds: 9, turns: 7 });
  expect(own).toMatchObject({ promptTokens: 100, completionTokens: 10 });
  expect(own?.logMean).toBeCloseTo(mean, 4);
  expect(own?.logVariance).toBeCloseTo(logs.reduce((sum, one) => sum + (one - mean) ** 2, 0) / 3, 4);
  expect(await read('x')).toEqual({ own: null, prior: { ...prior, count: 3 } });
});

test('another agent has a history of its own, and another family the mean of all', async () => {
  const { farm, run } = await begin();
  await using _farm = farm;
  await farm.commit(run, testResult(run.run_id, 0, { family, seconds: secondsOf(10, 0) }));
  const golden = await farm.history.read({ type: 'golden', card: null }, [{ instance_id: ITEM, family }]);
  expect([golden.of.size, golden.prior(family)]).toEqual([0, null]);
  const other = await farm.history.read(run.agent, [{ instance_id: ITEM, family: 'swegym' }]);
  expect([other.of.size, other.prior('swegym')?.seconds]).toEqual([0, 11]);
});

test('a mean forgets old rollouts beyond its largest weight', async () => {
  const { farm, run, read } = await begin();
  await using _farm = farm;
  const commit = async (from: number, to: number, agent: number) => {
    for (let index = from; index < to; index++)
      await farm.commit(run, testResult(run.run_id, index, { family, seconds: secondsOf(agent, 0) }));
  };
  await commit(0, 100, 9);
  await commit(100, 400, 99);
  const { own, prior } = await read(ITEM);
  expect(own?.count).toBe(400);
  expect(own?.seconds).toBeGreaterThan(98);
  expect(prior?.seconds).toBeCloseTo(77.5, 0);
});

test('a branch counts neither in the history nor in the pass rates of its instance', async () => {
  await using farm = await testFarm();
  const policy = PolicyConfig.parse({ urls: ['http://p/v1'], model: 'm' });
  const run = testRun({ policy });
  await farm.runs.create(run, [testInstance(ITEM)]);
  const counted = { family, seconds: secondsOf(10, 0) };
  await farm.commit(run, testResult(run.run_id, 0, counted));
  const branch_of = { rollout_id: `${run.run_id}.${ITEM}.0`, turn: 3 };
  await farm.commit(run, testResult(run.run_id, 1, { ...counted, branch_of }));
  expect(await readOf(farm, run.agent, ITEM)).toMatchObject({ own: { count: 1 }, prior: { count: 1 } });
  const passes = await farm.passes.read(policy, family);
  expect([...passes.values()]).toMatchObject([[[expect.any(String), 1, expect.any(Number)]]]);
});
