/**
 * Runs a job on this worker, forwards it to a worker whose node has its image, or retries it later. Moves the job in the queue, with the
 * current lock of this worker.
 */
import { errorMessage, type Log, needsOf, problemOf, RolloutJob, UNDERSTOOD } from '@swefarm/shared';
import type { Node } from '../node/node.ts';
import type { Route } from '../node/routing.ts';
import { attemptRollout } from '../rollout/attempt.ts';
import { type AfterAttempt, HAND_BACK } from '../rollout/context.ts';
import { retryUntilAnswered } from '../rollout/untilanswered.ts';
import type { JobLocks } from './joblocks.ts';
import type { Job } from './queue.ts';

const UNFORESEEN_DELAY_MS = 5_000;
const UNREADABLE_DELAY_MS = 5_000;
/** Delay of a job that was forwarded to a worker that claims nothing or cannot read the job. */
const NOT_HERE_DELAY_MS = 1_000;
/** Delay of a job while this worker is still ending an earlier attempt at it. */
const ENDING_MS = 1_000;

export type JobDeps = {
  node: Node;
  locks: JobLocks;
  reader: ReturnType<typeof createJobReader>;
  /** Returns false while this worker is paused or drains. */
  mayStart: () => boolean;
};

export function createJobReader(log: Log) {
  const logged = new Set<string>();
  /** Logs that a rollout is left to another version, once for each run. */
  const logNotOurs = (rolloutId: string, problem: string): void => {
    const runId = rolloutId.slice(0, rolloutId.indexOf('.'));
    if (!logged.has(runId))
      log.warn({ rollout_id: rolloutId, problem }, 'rollout left to another version, at no cost');
    logged.add(runId);
  };
  return {
    /** Returns null when the job is damaged or needs a newer version. The job then waits for a worker of that version. */
    read(job: Job): RolloutJob | null {
      const needs = needsOf(job.data);
      const read = RolloutJob.safeParse(job.data);
      if (needs <= UNDERSTOOD && read.success) return read.data;
      logNotOurs(job.id ?? '', read.success ? `it needs level ${needs}` : problemOf(read.error));
      return null;
    },
    logNotOurs,
  };
}

/** Handles a job that this worker claimed from the queue. */
export async function runClaimed(job: Job, token: string, deps: JobDeps): Promise<void> {
  const { node, locks, reader } = deps;
  const id = job.id ?? '';
  if (await isInWork(job, token, deps)) return;
  locks.take(id, token);
  const data = reader.read(job);
  if (!data) return moveJob(job, { next: 'later', delayMs: UNREADABLE_DELAY_MS }, deps);
  // A paused worker may receive one more job, from the read that was under way.
  if (!deps.mayStart()) return moveJob(job, HAND_BACK, deps);
  const route = await routeJob(job, data, node);
  if (route.action === 'forward') return forward(id, token, route.worker, deps);
  if (route.action === 'retry_later') return moveJob(job, { next: 'later', delayMs: route.delayMs }, deps);
  const next = await runHere(job, data, deps);
  await node.router?.leave(id);
  await moveJob(job, next, deps);
}

/** Runs a job that another worker forwarded to a seat of this worker. */
export async function runForwarded(job: Job, token: string, deps: JobDeps): Promise<void> {
  const { node, locks, reader } = deps;
  const id = job.id ?? '';
  if (await isInWork(job, token, deps)) return;
  locks.take(id, token);
  const data = deps.mayStart() ? reader.read(job) : null;
  const next: AfterAttempt = data
    ? await runHere(job, data, deps)
    : { next: 'later', delayMs: NOT_HERE_DELAY_MS };
  await node.router?.leave(id);
  await moveJob(job, next, deps);
}

async function routeJob(job: Job, data: RolloutJob, { router, log }: Node): Promise<Route> {
  const anywhere = data.anywhere === true || job.stalledCounter > 0;
  const route = await router?.route(data, anywhere).catch((error: unknown) => {
    log.warn({ err: errorMessage(error) }, 'routing failed: running the job here');
    return null;
  });
  return route ?? { action: 'run_here' };
}

/** Forwards a job, which stays active under the same lock. The other worker renews the lock; if that worker dies, the job stalls. */
async function forward(id: string, token: string, to: string, { node, locks }: JobDeps): Promise<void> {
  locks.drop(id, token);
  await node.farm.placement
    .hand(to, { job: id, token })
    .catch((error: unknown) => node.log.warn({ err: errorMessage(error) }, 'job not forwarded: it stalls'));
}

/** Runs the rollout on this worker. Never throws, because BullMQ would fail the job, and the rollout would have no result. */
async function runHere(job: Job, data: RolloutJob, { node, reader }: JobDeps): Promise<AfterAttempt> {
  const attempt = (signal: AbortSignal): Promise<AfterAttempt> =>
    attemptRollout(data, node, signal, job.priority);
  const next = await node.active.during(data.rollout_id, attempt).catch((error: unknown): AfterAttempt => {
    node.log.error({ err: error }, 'attempt failed without an end: its job is retried');
    return { next: 'later', delayMs: UNFORESEEN_DELAY_MS };
  });
  if (next.next === 'later' && next.notOurs) reader.logNotOurs(data.rollout_id, next.notOurs);
  return next;
}

/** Moves a job after its attempt, unless another worker has the job. Resolves when nothing of the attempt is left on this node. */
async function moveJob(job: Job, next: AfterAttempt, { node, locks }: JobDeps): Promise<void> {
  const { log } = node;
  const id = job.id ?? '';
  const token = locks.toMove(id);
  if (token === null) return;
  try {
    if (next.next === 'later') await putOff(job, next, token, log);
    // The job becomes the first of its priority, and an idle worker claims it within a second (drainDelay).
    else if (next.next === 'hand_back') await untilMoved(() => job.moveToWait(token), log);
    else await untilMoved(() => job.moveToCompleted(null, token, false), log);
  } catch (error) {
    log.warn({ job: id, err: errorMessage(error) }, 'job not moved: this worker has lost it');
  } finally {
    locks.drop(id, token);
  }
  if (next.next === 'hand_back') await next.gone;
  if (next.next === 'later') await next.delayed?.();
}

async function putOff(
  job: Job,
  { anywhere, passed, delayMs }: AfterAttempt & { next: 'later' },
  token: string,
  log: Node['log'],
): Promise<void> {
  const change = { ...(anywhere ? { anywhere } : {}), ...(passed ? { passed } : {}) };
  if (anywhere || passed) await untilMoved(() => job.updateData({ ...job.data, ...change }), log);
  await untilMoved(() => job.moveToDelayed(Date.now() + delayMs, token), log);
}

/** Retries until Redis moves the job, because BullMQ would count an unmoved job as failed and lose it. */
const untilMoved = (move: () => Promise<unknown>, log: Node['log']): Promise<unknown> =>
  retryUntilAnswered('job', move, { log });

/**
 * Returns whether a job that returned under a new lock still runs here, after a suspend of the machine or an outage of Redis. A running
 * attempt continues with the new lock; the job of an ending attempt is delayed.
 */
async function isInWork(job: Job, token: string, { node, locks }: JobDeps): Promise<boolean> {
  const { active, log } = node;
  const id = job.id ?? '';
  if (locks.has(id) && !active.isEnding(id)) {
    locks.take(id, token);
    log.info({ job: id }, 'job returned while it runs here: continuing with its new lock');
    return true;
  }
  if (!active.ids().includes(id)) return false;
  await untilMoved(() => job.moveToDelayed(Date.now() + ENDING_MS, token), log);
  return true;
}
