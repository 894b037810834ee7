/** Runs a job on this worker, forwards it to a worker whose node has its image, or retries it later. */
import { errorMessage, type Log, needsOf, problemOf, RolloutJob, UNDERSTOOD } from '@swefarm/shared';
import type { Node } from '../node/node.ts';
import type { Route } from '../node/routing.ts';
import { attemptRollout } from '../rollout/attempt.ts';
import { type AfterAttempt, HAND_BACK } from '../rollout/context.ts';
import type { JobLocks } from './joblocks.ts';
import { isInWork, moveJob } from './movejob.ts';
import type { Job } from './queue.ts';

const UNFORESEEN_DELAY_MS = 5_000;
const UNREADABLE_DELAY_MS = 5_000;
/** Delay of a job that was forwarded to a worker that claims nothing. */
const NOT_HERE_DELAY_MS = 1_000;

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
