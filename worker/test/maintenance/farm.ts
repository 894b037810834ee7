/** A farm on the tests' Redis for the duties of maintenance, with runs whose rollouts have jobs. */
import {
  type AttemptName,
  type FailureClass,
  type Farm,
  loadConfig,
  newId,
  openFarm,
  parseRolloutId,
  type RunRecord,
  silentLog,
} from '@swefarm/shared';
import { bareInstance, bareResult, bareRun } from '@swefarm/testkit';
import { onTestFinished } from 'vitest';
import { commitUnowned } from '../../src/maintenance/commitunowned.ts';
import { allDuties } from '../../src/maintenance/duties.ts';
import type { DutyDeps } from '../../src/maintenance/duty.ts';
import { createWorkerMetrics } from '../../src/metrics/workermetrics.ts';
import { simulateWorker } from '../simulated.ts';

export type Scene = { farm: Farm; deps: DutyDeps };

export const redisUrl = (): string => {
  const url = process.env.SWEFARM_TEST_REDIS_URL;
  if (!url) throw new Error('SWEFARM_TEST_REDIS_URL is set by testkit/src/vitest/redis.ts');
  return url;
};

/** The farm of this prefix as one worker sees it; the caller disposes of its `farm`. */
export async function openScene(prefix: string, url = redisUrl()): Promise<Scene> {
  const config = loadConfig('worker', { env: {}, flags: { redis_url: url, redis_prefix: prefix } });
  const farm = await openFarm(config, 'worker');
  return { farm, deps: dutyDeps(farm) };
}

/** Unfinished runs are read again by each duty. */
const dutyDeps = (farm: Farm): DutyDeps => ({
  farm,
  log: silentLog(),
  metrics: createWorkerMetrics(),
  unfinishedRuns: () => farm.groups.unfinishedRuns(),
  logged: new Map(),
});

/** The farm of a test, its prefix, and the texts of its log. */
export async function scene(url?: string): Promise<Scene & { prefix: string; logTexts: string[] }> {
  const prefix = `k-${newId()}`;
  const { farm, deps } = await openScene(prefix, url);
  onTestFinished(() => farm[Symbol.asyncDispose]());
  const logTexts: string[] = [];
  const note = (_fields: unknown, text: string): void => void logTexts.push(text);
  const log = { ...deps.log, error: note, warn: note, info: note, debug: note } as never;
  return { farm, deps: { ...deps, log }, prefix, logTexts };
}

/** Signal of a duty that is never interrupted. */
export const open = new AbortController().signal;

/** Runs all duties `rounds` times, because some duties continue the work of others: one cancels rollouts, and another commits them. */
export async function runDuties({ deps }: Scene, rounds = 2): Promise<void> {
  const duties = allDuties();
  for (let round = 0; round < rounds; round++) for (const duty of duties) await duty.run(deps, open);
}

/** Starts the worker `w1` with simulated rollouts on the tests' Redis, until the test ends. */
export async function startSimulated(
  prefix: string,
  simulation: Parameters<typeof simulateWorker>[1] = { slots: 4 },
): Promise<void> {
  const flags = { redis_url: redisUrl(), redis_prefix: prefix, worker_id: 'w1', node: 'n1' };
  const worker = await simulateWorker(loadConfig('worker', { env: {}, flags }), simulation);
  onTestFinished(() => worker.kill());
}

export const GROUP = 'a__b.c-1';
export const BY = { worker: 'w1', node: 'n1' };

/** A run of one group; with `queued`, as after a submit. */
export async function startRun(
  { farm }: Scene,
  change: Partial<RunRecord> = {},
  queued = true,
): Promise<{ run: RunRecord; ids: string[] }> {
  const run = bareRun(change);
  await farm.runs.create(run, [bareInstance({ instance_id: GROUP })]);
  const ids = await farm.groups.rollouts(run.run_id);
  if (queued) await farm.jobs.enqueue(run, ids);
  return { run, ids };
}

/** A worker with one heartbeat: it counts as alive for the next 15 s. */
export async function aWorker({ farm }: Scene, worker: string): Promise<void> {
  const rest = { runtime: 'host', slots: 4, active: 1, started_at: 1, metrics: null, paused: null };
  await farm.registry.beat({ worker, node: `node-${worker}`, ...rest });
}

/** Throws if the rollout cannot be claimed. */
export async function claimBy({ farm }: Pick<Scene, 'farm'>, id: string, by = BY): Promise<AttemptName> {
  const claim = await farm.journal.claim(id, by);
  if (claim.status !== 'claimed') throw new Error(`${id}: ${claim.status}`);
  return { attempt: claim.attempt, claim: claim.claim };
}

/** Claims a rollout and commits it, judged by its worker or failed. */
export async function endBy(
  at: Scene,
  run: RunRecord,
  id: string,
  end: { judged: number; unread?: number } | { failed: FailureClass },
  claimed?: AttemptName,
): Promise<void> {
  const { attempt, claim } = claimed ?? (await claimBy(at, id));
  if ('failed' in end) {
    const failure = { stage: 'sandbox' as const, class: end.failed, message: 'no', attempts: 3 };
    await commitUnowned(at.farm, run, id, await at.farm.journal.read(id), { outcome: 'failed', failure });
    return;
  }
  const { instanceId, index, runId } = parseRolloutId(id);
  const result = bareResult({
    ...{ run_id: runId, instance_id: instanceId, rollout_index: index, attempt, claim, ...BY },
    ...{ resolved: end.judged === 1, reward: end.judged, reward_row: 'judged', turns: 3 },
    ...(end.unread === undefined ? {} : { unread_calls: { answers: end.unread, marker: '<tool_call>' } }),
  });
  await at.farm.commit(run, result);
  await at.farm.journal.end(id, claim, { stage: null, class: 'done', cause: null });
}
