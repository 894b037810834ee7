/** Pulls jobs: those that this worker claims, and those that others forward to it, within its seats. */
import { waitAtMost } from '@swefarm/shared';
import type { Grace } from '../node/drain.ts';
import type { Node } from '../node/node.ts';
import { receiveForwarded } from './forwarded.ts';
import { startJobLocks } from './joblocks.ts';
import { openQueue, type Queue } from './queue.ts';
import { createJobReader } from './readjob.ts';
import { runClaimed } from './runjob.ts';

export type Pull = {
  /** Stops claiming without ending what runs, and starts again. */
  setPaused(paused: boolean): Promise<void>;
  /** No new jobs; what runs may finish, then it is handed back. Resolves when nothing runs. */
  drain(grace: Pick<Grace, 'finishMs' | 'handBackMs'>): Promise<void>;
};

/** Starts to pull at once, up to `seats` rollouts side by side. `prefix`: of the queue's keys in Redis. */
export function startPull(node: Node, seats: number, prefix: string): Pull {
  let paused = false;
  let draining = false;
  const locks = startJobLocks(node);
  const reader = createJobReader(node.log);
  const deps = { node, locks, reader, mayStart: () => !paused && !draining };
  const queue: Queue = openQueue(node, { seats, prefix }, (job, token) => runClaimed(job, token, deps));
  /** The seats bound claimed and forwarded jobs together. */
  const shareSeats = (): void => queue.setSeats(paused ? 0 : seats - forwarded.count());
  const forwarded = receiveForwarded(deps, queue, shareSeats);
  const close = async (): Promise<void> => {
    await queue.close();
    await forwarded.end();
    await locks.end();
  };
  return {
    async setPaused(next) {
      paused = next;
      if (next) await queue.pause();
      else shareSeats();
    },
    async drain(grace) {
      draining = true;
      await drainInTime(close(), grace, node, queue);
    },
  };
}

/** Attempts that outlast the first part of the grace period are ended; those that outlast the second are left. */
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
      log.error({ active: active.list() }, 'attempts did not end in time; their locks will expire');
      await queue.close(true);
    }
  }
}
