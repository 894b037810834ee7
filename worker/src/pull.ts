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
  UNDERSTOOD,
} from '@swefarm/shared';
import { Job, WaitingError, Worker } from 'bullmq';
import type { Grace } from './node/drain.ts';
import type { Node } from './node/node.ts';
import type { Route } from './node/routing.ts';
import { attemptRollout } from './rollout/attempt.ts';
import type { AfterAttempt } from './rollout/handback.ts';
import { holdJobs } from './rollout/heldjobs.ts';
import { retryUntilAnswered } from './rollout/untilanswered.ts';

const UNSETTLED_DELAY_MS = 5_000;
/** How long a job waits for an attempt at it to end that this worker was told to end. */
const ENDING_MS = 1_000;
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
  const unforeseen = (error: unknown): AfterAttempt => {
    node.log.error({ err: error }, 'an attempt could not be settled; its job is tried again');
    return { next: 'later', delayMs: UNSETTLED_DELAY_MS };
  };

  const run = async (data: RolloutJob): Promise<AfterAttempt> => {
    const attempt = (signal: AbortSignal): Promise<AfterAttempt> => attemptRollout(data, node, signal);
    const next = await node.active.during(data.rollout_id, attempt).catch(unforeseen);
    if (next.next === 'later' && next.notOurs) sayNotOurs(data.rollout_id, next.notOurs);
    return next;
  };

  const whither = async (job: Job, data: RolloutJob): Promise<Route> => {
    const anywhere = data.anywhere === true || job.stalledCounter > 0;
    const decided = await node.router?.route(data, anywhere).catch((error: unknown) => {
      node.log.warn({ err: errorMessage(error) }, 'no placement by image: running what is claimed');
      return null;
    });
    return decided ?? { to: 'here' };
  };

  /** A job that Redis would not move stays ours, under its lock: else BullMQ took it for failed, and it were lost. */
  const moved = (move: () => Promise<unknown>): Promise<unknown> =>
    retryUntilAnswered('job', move, { log: node.log });

  const held = holdJobs(node);

  const later = async (job: Job, next: AfterAttempt & { next: 'later' }, token: string): Promise<void> => {
    const { anywhere, passed } = next;
    const change = { ...(anywhere ? { anywhere } : {}), ...(passed ? { passed } : {}) };
    if (anywhere || passed) await moved(() => job.updateData({ ...job.data, ...change }));
    await moved(() => job.moveToDelayed(Date.now() + next.delayMs, token));
  };

  /** Moves the job by the lock that it has now, unless somebody else has it. */
  const move = async (job: Job, next: AfterAttempt): Promise<void> => {
    const id = job.id ?? '';
    const token = held.toMove(id);
    if (token === null) return;
    try {
      if (next.next === 'later') await later(job, next, token);
      // At the head of its priority; an idle worker looks within a second (drainDelay).
      else if (next.next === 'hand_back') await moved(() => job.moveToWait(token));
      else await moved(() => job.moveToCompleted(null, token, false));
    } catch (error) {
      node.log.warn({ job: id, err: errorMessage(error) }, 'the job is not ours to move any more');
    } finally {
      held.drop(id, token);
    }
    if (next.next === 'hand_back') await next.gone;
  };

  /**
   * A job that is in work here came back under a new lock: the machine was suspended, or Redis was away. What runs goes on with that
   * lock; what was told to end comes to its end before it is begun anew.
   */
  const isAgain = async (job: Job, token: string): Promise<boolean> => {
    const id = job.id ?? '';
    if (held.has(id) && !node.active.isEnding(id)) {
      held.take(id, token);
      node.log.info({ job: id }, 'a job came back that is in work here; it goes on');
      return true;
    }
    if (!node.active.ids().includes(id)) return false;
    await moved(() => job.moveToDelayed(Date.now() + ENDING_MS, token));
    return true;
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

  /** Moves each job itself, so that BullMQ is told by an error that it has nothing more to do. */
  const process = async (job: Job, token = ''): Promise<void> => {
    const id = job.id ?? '';
    if (await isAgain(job, token)) throw new WaitingError();
    held.take(id, token);
    const data = readJob(job);
    // A worker that pauses still takes one job with the read it had begun.
    const stays = draining || paused;
    const where: Route = stays || !data ? { to: 'here' } : await whither(job, data);
    if (where.to === 'worker') {
      held.drop(id, token);
      await node.farm.placement
        .hand(where.worker, { job: id, token })
        .catch((error: unknown) =>
          node.log.warn({ err: errorMessage(error) }, 'not handed on; it will stall'),
        );
      // It stays active under the same lock, which is the other worker's to renew; when that one dies, it stalls.
    } else if (where.to === 'later') await move(job, { next: 'later', delayMs: where.delayMs });
    else if (!data) await move(job, { next: 'later', delayMs: NOT_OURS_MS });
    else if (stays) await move(job, { next: 'hand_back', gone: Promise.resolve() });
    else {
      const next = await run(data);
      await node.router?.leave(id);
      await move(job, next);
    }
    throw new WaitingError();
  };

  const [queue] = QUEUES;
  const options = {
    connection: node.farm.bullConnection(),
    prefix,
    concurrency,
    ...queueSettings,
    // It renews by the clock of the node, and takes no lock again that has run out.
    skipLockRenewal: true,
  };
  const worker = new Worker(queue, process, options, node.farm.bullBackend);
  worker.on('error', (error) => node.log.warn({ err: errorMessage(error) }, 'queue'));
  worker.on('failed', (job, error) =>
    node.log.error({ job: job?.id, err: error }, 'a job failed in the queue: our bug'),
  );

  /** What others handed to this worker, which BullMQ's loop does not count. */
  const handed = new Set<Promise<void>>();

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
      await node.router?.leave(id);
      return;
    }
    if (await isAgain(job, token)) return;
    held.take(id, token);
    const stays = draining || paused;
    const data = stays ? null : readJob(job);
    const next: AfterAttempt = data ? await run(data) : { next: 'later', delayMs: NOT_HERE_MS };
    await node.router?.leave(id);
    await move(job, next);
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
  const listened = node.router ? listen() : Promise.resolve();
  const settled = async (): Promise<void> => {
    await worker.close();
    listening.abort();
    await listened;
    await Promise.all(handed);
    await held.end();
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
