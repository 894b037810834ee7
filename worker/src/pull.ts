/** The only place of the worker that knows BullMQ: it hands jobs out, keeps their locks, and decides nothing about outcomes. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  errorMessage,
  type Handed,
  needsOf,
  problemOf,
  QUEUES,
  queueSettings,
  RolloutJob,
  refusedByRedis,
  UNDERSTOOD,
} from '@swefarm/shared';
import { DelayedError, Job, WaitingError, Worker } from 'bullmq';
import { attemptRollout } from './attempt.ts';
import type { Grace } from './drain.ts';
import type { Next } from './ending.ts';
import { insist } from './insist.ts';
import type { Node } from './node.ts';
import type { Whither } from './placing.ts';

const UNSETTLED_DELAY_MS = 5_000;
/** Half of the lock's life, as BullMQ does it. */
const RENEW_MS = queueSettings.lockDuration / 2;
const AWAY_MS = 1_000;
/** How soon a job that this version cannot read is looked at again, by whoever claims it. */
const NOT_OURS_MS = 5_000;
/** How soon a rollout that was handed to a worker which claims nothing is claimed by another. */
const NOT_HERE_MS = 1_000;

export type Pull = {
  /** Stops claiming without ending what runs, and starts again. */
  setPaused(paused: boolean): Promise<void>;
  /** No new jobs; what runs may finish, then it is handed back. Resolves when nothing runs. */
  drain(grace: Pick<Grace, 'finishMs' | 'handBackMs'>): Promise<void>;
};

/** Starts to pull at once, up to `concurrency` rollouts side by side. */
export function startPull(node: Node, concurrency: number, prefix: string): Pull {
  let paused = false;
  let draining = false;
  const notOurs = new Set<string>();

  /** Whatever escapes an attempt must not let BullMQ fail the job: it would be lost without a result. */
  const unforeseen = (error: unknown): Next => {
    node.log.error({ err: error }, 'an attempt could not be settled; its job is tried again');
    return { next: 'later', delayMs: UNSETTLED_DELAY_MS };
  };

  const run = async (data: RolloutJob): Promise<Next> => {
    const attempt = (signal: AbortSignal): Promise<Next> => attemptRollout(data, node, signal);
    const next = await node.active.during(data.rollout_id, attempt).catch(unforeseen);
    if (next.next === 'later' && next.notOurs) sayNotOurs(data.rollout_id, next.notOurs);
    return next;
  };

  const whither = async (job: Job, data: RolloutJob): Promise<Whither> => {
    const anywhere = data.anywhere === true || job.stalledCounter > 0;
    const decided = await node.placing?.whither(data, anywhere).catch((error: unknown) => {
      node.log.warn({ err: errorMessage(error) }, 'no placement by image: running what is claimed');
      return null;
    });
    return decided ?? { to: 'here' };
  };

  /** A job that Redis would not move stays ours, under its lock: else BullMQ took it for failed, and it were lost. */
  const moved = (move: () => Promise<unknown>): Promise<unknown> => insist('job', move, { log: node.log });

  const later = async (job: Job, next: Next & { next: 'later' }, token?: string): Promise<void> => {
    if (next.anywhere) await moved(() => job.updateData({ ...job.data, anywhere: true }));
    await moved(() => job.moveToDelayed(Date.now() + next.delayMs, token));
  };

  /** Said once of each run, however many rollouts it has. */
  const sayNotOurs = (rolloutId: string, problem: string): void => {
    const runId = rolloutId.slice(0, rolloutId.indexOf('.'));
    if (!notOurs.has(runId))
      node.log.warn({ rollout_id: rolloutId, problem }, 'left to another version, at no cost');
    notOurs.add(runId);
  };

  /** Null: of a newer version, whose workers it waits for, or damaged. */
  const readJob = (job: Job): RolloutJob | null => {
    const needs = needsOf(job.data);
    const read = RolloutJob.safeParse(job.data);
    if (needs <= UNDERSTOOD && read.success) return read.data;
    sayNotOurs(job.id ?? '', read.success ? `it needs level ${needs}` : problemOf(read.error));
    return null;
  };

  const process = async (job: Job, token?: string): Promise<void> => {
    const data = readJob(job);
    if (!data) {
      await later(job, { next: 'later', delayMs: NOT_OURS_MS }, token);
      throw new DelayedError();
    }
    // A worker that pauses still takes one job with the read it had begun.
    const stays = draining || paused;
    const where: Whither = stays ? { to: 'here' } : await whither(job, data);
    if (where.to === 'later') {
      await moved(() => job.moveToDelayed(Date.now() + where.delayMs, token));
      throw new DelayedError();
    }
    if (where.to === 'worker') {
      await node.farm.placement
        .hand(where.worker, { job: job.id ?? '', token: token ?? '' })
        .catch((error: unknown) =>
          node.log.warn({ err: errorMessage(error) }, 'not handed on; it will stall'),
        );
      // It stays active under the same lock, which is the other worker's to renew; when that one dies, it stalls.
      throw new WaitingError();
    }
    const next: Next = stays ? { next: 'hand_back', gone: Promise.resolve() } : await run(data);
    if (!stays) await node.placing?.leave(data.rollout_id);
    if (next.next === 'later') {
      await later(job, next, token);
      throw new DelayedError();
    }
    if (next.next === 'hand_back') {
      // At the head of its priority; an idle worker looks within a second (drainDelay).
      await moved(() => job.moveToWait(token));
      await next.gone;
      throw new WaitingError();
    }
  };

  const [queue] = QUEUES;
  const worker = new Worker(queue, process, {
    connection: node.farm.bullConnection(),
    prefix,
    concurrency,
    ...queueSettings,
  });
  worker.on('error', (error) => node.log.warn({ err: errorMessage(error) }, 'queue'));
  worker.on('failed', (job, error) => {
    if (!refusedByRedis(error))
      node.log.error({ job: job?.id, err: error }, 'a job failed in the queue: our bug');
    // Its result is there, and Redis would not take the job's end when it was told of it.
    else if (job) void moved(() => job.remove()).catch(() => undefined);
  });
  worker.on('lockRenewalFailed', (ids) => {
    // The attempt goes on: the journal, read by the heartbeat, tells whether somebody else has it by now.
    node.metrics.lockLosses.inc(ids.length);
    node.log.warn({ jobs: ids }, 'lost the lock; going on until another worker claims');
  });

  /** What others handed to this worker, which BullMQ's loop does not count; and the locks of those jobs, by token. */
  const handed = new Set<Promise<void>>();
  const locks = new Map<string, string>();
  /** All in one call: a farm may hold tens of thousands. One that is lost is noticed by the heartbeat, in the journal. */
  const renew = (): void => {
    if (locks.size === 0) return;
    worker
      .extendJobLocks([...locks.keys()], [...locks.values()], queueSettings.lockDuration)
      .catch(() => undefined);
  };

  /** Seats bound both together; BullMQ's share is what the handed ones leave. */
  const share = (): void => {
    const left = concurrency - handed.size;
    worker.concurrency = Math.max(1, left);
    const stop = paused || left <= 0;
    if (stop === worker.isPaused()) return;
    void (stop ? worker.pause(true) : worker.resume());
  };

  const runHanded = async ({ job: id, token }: Handed): Promise<void> => {
    const job = await Job.fromId(worker, id);
    const mine = job !== undefined && (await job.extendLock(token, queueSettings.lockDuration)) === 1;
    if (!job || !mine) {
      // It came too late: the job stalled meanwhile and is somebody else's.
      await node.placing?.leave(id);
      return;
    }
    locks.set(id, token);
    try {
      const stays = draining || paused;
      const data = stays ? null : readJob(job);
      const next: Next = data ? await run(data) : { next: 'later', delayMs: NOT_HERE_MS };
      await node.placing?.leave(id);
      locks.delete(id);
      if (next.next === 'later') await later(job, next, token);
      else if (next.next === 'hand_back') await moved(() => job.moveToWait(token)).then(() => next.gone);
      else await moved(() => job.moveToCompleted(null, token, false));
    } finally {
      locks.delete(id);
    }
  };

  const listening = new AbortController();
  const listen = async (): Promise<void> => {
    while (!listening.signal.aborted) {
      try {
        const one = await node.farm.placement.receive(node.identity.worker);
        if (!one) continue;
        const running: Promise<void> = runHanded(one)
          .catch((error: unknown) =>
            node.log.warn({ job: one.job, err: errorMessage(error) }, 'a job that was handed on'),
          )
          .finally(() => {
            handed.delete(running);
            share();
          });
        handed.add(running);
        share();
      } catch (error) {
        if (listening.signal.aborted) return;
        node.log.debug({ err: errorMessage(error) }, 'nothing can be handed to this worker');
        await sleep(AWAY_MS, undefined, { signal: listening.signal }).catch(() => undefined);
      }
    }
  };
  const renewing = setInterval(renew, RENEW_MS).unref();
  const listened = node.placing ? listen() : Promise.resolve();
  const settled = async (): Promise<void> => {
    await worker.close();
    listening.abort();
    await listened;
    await Promise.all(handed);
    clearInterval(renewing);
  };

  return {
    async setPaused(next) {
      paused = next;
      if (next) await worker.pause(true);
      else share();
    },
    async drain({ finishMs, handBackMs }) {
      draining = true;
      const timer = new AbortController();
      const closed = settled().then(() => true);
      const graceOver = sleep(finishMs, false, { signal: timer.signal }).catch(() => false);
      if (!(await Promise.race([closed, graceOver]))) {
        node.active.abortAll('drain');
        const late = sleep(handBackMs, false, { signal: timer.signal }).catch(() => false);
        if (!(await Promise.race([closed, late]))) {
          node.log.error(
            { active: node.active.list() },
            'attempts did not end in time; their locks will expire',
          );
          await worker.close(true);
        }
      }
      timer.abort();
    },
  };
}
