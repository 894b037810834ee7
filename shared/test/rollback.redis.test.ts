/** Redis restarts from an older copy while the workers of lost claims continue. */
import { rawRedis, startRedis } from '@swefarm/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AttemptName, type Farm, openFarm, type RunRecord } from '../src/index.ts';
import { claimed, testConfig, testInstance, testResult, testRun } from './farm.ts';

let redis: Awaited<ReturnType<typeof startRedis>>;
beforeAll(async () => {
  redis = await startRedis({ settings: ['appendonly no', 'save ""'] });
});
afterAll(() => redis[Symbol.asyncDispose]());

type Scene = {
  farm: Farm;
  run: RunRecord;
  id: string;
  /** Makes the copy. */
  save(): Promise<void>;
  /** Restarts Redis from the copy. */
  goBack(): Promise<void>;
};

async function scene(use: (at: Scene) => Promise<void>): Promise<void> {
  const config = testConfig({ redis_url: redis.url, redis_durability: 'best_effort' });
  await using farm = await openFarm(config, 'worker');
  const send = rawRedis(farm);
  const run = testRun();
  await farm.runs.create(run, [testInstance()]);
  const at: Scene = {
    farm,
    run,
    id: `${run.run_id}.a__b.c-1.0`,
    save: async () => void (await send('SAVE')),
    async goBack() {
      await redis.kill();
      await redis.restart();
      await expect.poll(() => farm.ping().catch(() => null), { timeout: 120_000 }).not.toBeNull();
    },
  };
  await at.save();
  await use(at);
}

/** Commits an attempt and returns the status; the artifact contains `worker`. A late attempt removes its artifact. */
async function endBy({ farm, run, id }: Scene, worker: string, by: AttemptName): Promise<string> {
  const artifact = await farm.artifacts.put(id, by, Buffer.from(worker));
  const result = testResult(run.run_id, 0, { ...by, worker, artifact, reward_row: `judged ${worker}` });
  const reply = await farm.commit(run, result);
  if (reply.status === 'late') await farm.artifacts.remove(artifact);
  return reply.status;
}

const ORDERS = [
  { second: 'b', first: 'a', name: 'another worker claims, the first one ends first' },
  { second: 'b', first: 'b', name: 'another worker claims, and ends first' },
  { second: 'a', first: 'a', name: 'the same worker claims again' },
];

test.each(ORDERS)(
  'after a lost claim, $name: reward and artifact are of one attempt',
  async ({ second, first }) => {
    await scene(async (at) => {
      const { farm, id } = at;
      const lost = await claimed(farm, id, 'a');
      await at.goBack();
      const next = await claimed(farm, id, second);
      expect(next.attempt).toBe(lost.attempt);
      expect(next.claim).not.toBe(lost.claim);
      const running = (by: AttemptName) => [{ rollout_id: id, ...by }];
      const overOf = (by: AttemptName) => farm.journal.renewAttempts({ worker: 'a', node: 'n' }, running(by));
      expect([(await overOf(lost)).size, (await overOf(next)).size]).toEqual([1, 0]);

      const order = first === 'a' ? [lost, next] : [next, lost];
      const replies: string[] = [];
      for (const by of order) replies.push(await endBy(at, `${by.claim}`, by));
      expect(replies).toEqual(['committed', 'late']);
      const won = await farm.results.get(id);
      expect(won).toMatchObject({ claim: order[0]?.claim, reward_row: `judged ${order[0]?.claim}` });
      expect(String(await farm.artifacts.get(won?.artifact ?? ''))).toBe(order[0]?.claim);
      expect((await Array.fromAsync(farm.artifacts.runParts(at.run.run_id))).flat()).toHaveLength(1);
    });
  },
);

test('without another claim the attempt continues, and its claim and end are restored', async () => {
  await scene(async (at) => {
    const { farm, id } = at;
    const by = { worker: 'a', node: 'n' };
    const lost = await claimed(farm, id, 'a');
    await at.goBack();
    expect(await farm.journal.renewAttempts(by, [{ rollout_id: id, ...lost }])).toEqual(new Set());
    await farm.journal.end(id, lost.claim, { stage: null, class: 'drained', cause: null });
    expect(await farm.journal.read(id)).toMatchObject([{ ...lost, worker: 'a', end: { class: 'drained' } }]);
  });
});

test('a lost artifact is stored again before the commit', async () => {
  await scene(async (at) => {
    const { farm, run, id } = at;
    const by = await claimed(farm, id, 'a');
    await at.save();
    const artifact = await farm.artifacts.put(id, by, Buffer.from('a'));
    await at.goBack();
    const result = testResult(run.run_id, 0, { ...by, worker: 'a', artifact });
    expect(await farm.commit(run, result)).toEqual({ status: 'artifact_lost' });
    expect(await farm.results.get(id)).toBeNull();
    expect(await endBy(at, 'a', by)).toBe('committed');
  });
});
