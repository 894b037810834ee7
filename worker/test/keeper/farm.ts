/** A farm on the tests' Redis for the keeper's duties, with runs whose rollouts have jobs. */
import {
  createWorkerMetrics,
  type Farm,
  Instance,
  loadConfig,
  newId,
  openFarm,
  RunRecord,
  silentLog,
} from '@swefarm/shared';
import { onTestFinished } from 'vitest';
import type { KeeperDeps } from '../../src/keeper/keeper.ts';

export type Scene = { farm: Farm; deps: KeeperDeps };

export async function scene(): Promise<Scene> {
  const url = process.env.SWEFARM_TEST_REDIS_URL;
  if (!url) throw new Error('SWEFARM_TEST_REDIS_URL is set by testkit/src/vitest/redis.ts');
  const config = loadConfig('worker', { env: {}, flags: { redis_url: url, redis_prefix: `k-${newId()}` } });
  const farm = await openFarm(config, 'worker');
  onTestFinished(() => farm[Symbol.asyncDispose]());
  return { farm, deps: { farm, log: silentLog() as never, metrics: createWorkerMetrics() } };
}

export const GROUP = 'a__b.c-1';

/** A run of one group; with `queued`, as a submit leaves it. */
export async function startRun(
  { farm }: Scene,
  change: Partial<RunRecord> = {},
  queued = true,
): Promise<{ run: RunRecord; ids: string[] }> {
  const run = RunRecord.parse({
    format: 'swefarm-run-1',
    run_id: newId(),
    created_at: '2026-01-02T03:04:05.000Z',
    dataset: { path: 'rows.jsonl', sha256: 'ab', instances: 1 },
    group_size: 4,
    agent: {},
    policy: null,
    sandbox: {},
    evaluation: {},
    reward: { table: 'default', hash: 'cd' },
    ...change,
  });
  const instance = Instance.parse({
    instance_id: GROUP,
    repo: 'a/b',
    base_commit: 'f00',
    problem_statement: 'p',
    FAIL_TO_PASS: ['t::one'],
    PASS_TO_PASS: [],
    family: 'custom',
    image: 'example:1',
  });
  await farm.runs.create(run, [instance]);
  const ids = await farm.groups.rollouts(run.run_id);
  if (queued) await farm.jobs.enqueue(run, ids);
  return { run, ids };
}

/** A worker that beats once: it lives for the next 15 s. */
export async function aWorker({ farm }: Scene, worker: string): Promise<void> {
  const rest = { runtime: 'host', slots: 4, active: 1, started_at: 1, metrics: null, paused: null };
  await farm.registry.beat({ worker, node: `node-${worker}`, ...rest });
}
