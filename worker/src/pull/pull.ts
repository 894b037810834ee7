/** Runs claimed and forwarded jobs, together at most as many as this worker has seats (slots). */
import { errorMessage, type Handed, sleepAtMost, waitAtMost } from '@swefarm/shared';
import type { Grace } from '../node/drain.ts';
import type { Node } from '../node/node.ts';
import { startJobLocks } from './joblocks.ts';
import { openQueue, type Queue } from './queue.ts';
import { createJobReader, type JobDeps, runClaimed, runForwarded } from './runjob.ts';

const REDIS_AWAY_MS = 1_000;

/** Starts to pull at once, up to `seats` rollouts in parallel. `prefix` is the prefix of the queue's keys in Redis. */
export function startPull(node: Node, seats: number, prefix: string) {
  let paused = false;
  let draining = false;
  const locks = startJobLocks(node);
  const reader = createJobReader(node.log);
  const deps = { node, locks, reader, mayStart: () => !paused && !draining };
  const queue: Queue = openQueue(node, { seats, prefix }, (job, token) => runClaimed(job, token, deps));
  const shareSeats = (): void => queue.setSeats(paused ? 0 : seats - forwarded.count());
  const forwarded = receiveForwarded(deps, queue, shareSeats);
  const close = async (): Promise<void> => {
    await queue.close();
    await forwarded.end();
    await locks.end();
  };
  return {
    /** Stops or resumes claiming. Running rollouts continue. */
    async setPaused(next: boolean): Promise<void> {
      paused = next;
      if (next) await queue.pause();
      else shareSeats();
    },
    /** Stops claiming. Rollouts may finish for `finishMs`, then are handed back. Resolves when none runs, or after `handBackMs` more. */
    async drain(grace: Pick<Grace, 'finishMs' | 'handBackMs'>): Promise<void> {
      draining = true;
      await drainInTime(close(), grace, node, queue);
    },
  };
}

/** Hands back attempts that outlast `finishMs`, and abandons attempts that then outlast `handBackMs`. */
async function drainInTime(
  closing: Promise<void>,
  { finishMs, handBackMs }: Pick<Grace, 'finishMs' | 'handBackMs'>,
  { active, log }: Node,
  queue: Queue,
): Promise<void> {
  const within = async (ms: number): Promise<boolean> => (await waitAtMost(closing, ms)).by === 'itself';
  if (!(await within(finishMs))) {
    active.abortAll('drain');
    if (!(await within(handBackMs))) {
      log.error({ active: active.list() }, 'attempts did not end in time: their locks expire');
      await queue.close(true);
    }
  }
}

/**
 * Receives jobs that other workers forward to this worker with their locks, if this worker has a router. BullMQ does not count these jobs,
 * so `onChange` is called whenever the number of running ones has changed.
 */
function receiveForwarded(deps: JobDeps, queue: Queue, onChange: () => void) {
  const { node } = deps;
  const running = new Set<Promise<void>>();
  const over = new AbortController();
  const start = (handed: Handed): void => {
    const run: Promise<void> = runHanded(handed, queue, deps)
      .catch((error: unknown) =>
        node.log.warn({ job: handed.job, err: errorMessage(error) }, 'forwarded job failed'),
      )
      .finally(() => {
        running.delete(run);
        onChange();
      });
    running.add(run);
    onChange();
  };
  const receiving = node.router ? receive(node, start, over.signal) : Promise.resolve();
  return {
    count: () => running.size,
    /** Stops receiving jobs and waits for running ones. */
    async end(): Promise<void> {
      over.abort();
      // The call is not awaited, because Redis may be unavailable; without the call, the wait for a job ends within a second.
      if (node.router) node.farm.placement.wake(node.identity.worker).catch(() => undefined);
      await receiving;
      await Promise.all(running);
    },
  };
}

async function receive(node: Node, start: (handed: Handed) => void, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      const handed = await node.farm.placement.receive(node.identity.worker);
      if (handed) start(handed);
    } catch (error) {
      if (signal.aborted) return;
      node.log.debug({ err: errorMessage(error) }, 'receiving forwarded jobs failed');
      await sleepAtMost(REDIS_AWAY_MS, signal);
    }
  }
}

async function runHanded({ job: id, token }: Handed, queue: Queue, deps: JobDeps): Promise<void> {
  const job = await queue.find(id);
  if (job && (await queue.renewLock(job, token))) return runForwarded(job, token, deps);
  // The lock expired before the job arrived, and another worker has the job.
  await deps.node.router?.leave(id);
}
