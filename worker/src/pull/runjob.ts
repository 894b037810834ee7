/** Runs a job on this worker, forwards it to a worker whose node has its image, or retries it later. */
import { errorMessage, type RolloutJob } from '@swefarm/shared';
import type { Node } from '../node/node.ts';
import type { Route } from '../node/routing.ts';
import { attemptRollout } from '../rollout/attempt.ts';
import { type AfterAttempt, HAND_BACK } from '../rollout/context.ts';
import type { JobLocks } from './joblocks.ts';
import { isInWork, moveJob } from './movejob.ts';
import type { Job } from './queue.ts';
import type { JobReader } from './readjob.ts';

const UNFORESEEN_DELAY_MS = 5_000;
const UNREADABLE_DELAY_MS = 5_000;
/** Delay of a job that was forwarded to a worker that claims nothing. */
const NOT_HERE_DELAY_MS = 1_000;

export type JobDeps = {
  node: Node;
  locks: JobLocks;
  reader: JobReader;
  /** Returns false while this worker is paused or drains. */
  mayStart: () => boolean;
};

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
  const next = await runHere(data, deps);
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
  const next: AfterAttempt = data ? await runHere(data, deps) : { next: 'later', delayMs: NOT_HERE_DELAY_MS };
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
async function runHere(data: RolloutJob, { node, reader }: JobDeps): Promise<AfterAttempt> {
  const attempt = (signal: AbortSignal): Promise<AfterAttempt> => attemptRollout(data, node, signal);
  const next = await node.active.during(data.rollout_id, attempt).catch((error: unknown): AfterAttempt => {
    node.log.error({ err: error }, 'attempt failed without an end: its job is retried');
    return { next: 'later', delayMs: UNFORESEEN_DELAY_MS };
  });
  if (next.next === 'later' && next.notOurs) reader.logNotOurs(data.rollout_id, next.notOurs);
  return next;
}
