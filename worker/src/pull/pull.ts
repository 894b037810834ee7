/** Runs claimed and forwarded jobs, together at most as many as this worker has seats (slots). */
import { waitAtMost } from '@swefarm/shared';
import type { Grace } from '../node/drain.ts';
import type { Node } from '../node/node.ts';
import { receiveForwarded } from './forwarded.ts';
import { startJobLocks } from './joblocks.ts';
import { openQueue, type Queue } from './queue.ts';
import { createJobReader } from './readjob.ts';
import { runClaimed } from './runjob.ts';

export type Pull = {
  /** Stops or resumes claiming. Running rollouts continue. */
  setPaused(paused: boolean): Promise<void>;
  /** Stops claiming. Running rollouts may finish for `finishMs`, then they are handed back to the queue. Resolves when no rollout runs. */
  drain(grace: Pick<Grace, 'finishMs' | 'handBackMs'>): Promise<void>;
};

/** Starts to pull at once, up to `seats` rollouts in parallel. `prefix` is the prefix of the queue's keys in Redis. */
export function startPull(node: Node, seats: number, prefix: string): Pull {
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
