/** Malformed run records in the Redis of a real worker: each is reported or runs, and all other runs continue. */
import { setTimeout as sleep } from 'node:timers/promises';
import { AgentConfig, isNotOurs, PolicyConfig, type RunRecord } from '@swefarm/shared';
import { oddJson, oddTree, rawRedis } from '@swefarm/testkit';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { scene, startRun, startSimulated } from './farm.ts';

const CASES = 60;
const PATIENCE_MS = 90_000;
const seed = Number(process.env.SWEFARM_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));

const oddness = fc.record({ at: fc.nat({ max: 10_000 }), what: fc.nat({ max: 10_000 }) });
const changes = fc.array(oddness, { minLength: 1, maxLength: 3 });

test(`odd run records (SWEFARM_TEST_SEED=${seed})`, { timeout: 150_000 }, async () => {
  const at = await scene();
  const { prefix } = at;
  const redisCall = rawRedis(at.farm);
  const plain: Partial<RunRecord> = {
    ...{ agent: AgentConfig.parse({ type: 'noop' }), group_size: 2, refills: 1, min_group: 2 },
    ...{ max_staleness: 3, deadline_at: Date.now() + 3_600_000 },
    policy: PolicyConfig.parse({ urls: ['http://127.0.0.1:9/v1'], model: 'm', sampling: { seed: 1 } }),
  };
  const odd = await Promise.all(
    fc.sample(changes, { seed, numRuns: CASES }).map(async (one) => {
      const { run, ids } = await startRun(at, plain);
      const { tree, description } = oddTree(run, one);
      await redisCall('SET', `{${prefix}}:run:${run.run_id}`, oddJson(tree), 'KEEPTTL');
      return { runId: run.run_id, ids, description };
    }),
  );
  await startSimulated(prefix, { slots: 8 });
  const healthy = await startRun(at, plain);

  /** Returns what became of the run; null: it still runs. */
  const fate = async ({ runId, ids }: { runId: string; ids: string[] }): Promise<string | null> => {
    try {
      if ((await at.farm.runs.get(runId)) === null) return 'gone';
    } catch (error) {
      if (!isNotOurs(error)) throw error;
      expect(error.message).toContain(runId);
      return 'refused';
    }
    return (await at.farm.results.counts(runId)).committed >= ids.length ? 'ran' : null;
  };
  const all = [...odd, { runId: healthy.run.run_id, ids: healthy.ids, description: 'nothing' }];
  const deadline = Date.now() + PATIENCE_MS;
  let open = all;
  while (open.length > 0 && Date.now() < deadline) {
    await sleep(250);
    const fates = await Promise.all(open.map(fate));
    open = open.filter((_, index) => fates[index] === null);
  }
  expect(open.map(({ description }) => description)).toEqual([]);
  expect(await fate({ runId: healthy.run.run_id, ids: healthy.ids })).toBe('ran');
  // The worker is alive and does the maintenance, so a new run completes.
  expect((await at.farm.registry.list()).map((one) => one.worker)).toEqual(['w1']);
  const late = await startRun(at, plain, false);
  while ((await fate({ runId: late.run.run_id, ids: late.ids })) === null && Date.now() < deadline)
    await sleep(250);
  expect(await fate({ runId: late.run.run_id, ids: late.ids })).toBe('ran');
  for (const { runId } of odd) await at.farm.runs.remove(runId);
  const left = (await redisCall('KEYS', `{${prefix}}:run:*`)) as string[];
  expect(left.filter((key) => odd.some(({ runId }) => key.includes(runId)))).toEqual([]);
});
