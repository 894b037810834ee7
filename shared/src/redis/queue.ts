/** The queue: BullMQ delivers at least once and decides nothing. Settings that must be the same in a whole farm are here. */
import type { RunRecord } from '../records/job.ts';

/**
 * The queues of a farm: one. Which worker runs a job because of its image is decided when it is claimed (`worker/src/node/routing.ts`),
 * so that priorities hold over the whole farm and no job waits in the queue of a node that died.
 */
export const QUEUES = ['rollouts'] as const;

/** Options for BullMQ's Worker. The stall check is fleet-wide, so all workers must use the same numbers. */
export const queueSettings = {
  lockDuration: 20_000,
  stalledInterval: 5_000,
  /** Seconds; short, because a job that is handed back wakes no idle worker. */
  drainDelay: 1,
  /** BullMQ would fail jobs on its own account; our journal decides instead. */
  maxStalledCount: 1e9,
} as const;

export const jobSettings = {
  attempts: 1,
  /** The result is in the run's stream; a finished job has nothing more to say. */
  removeOnComplete: true,
  /** Only a bug of ours makes a job fail, so failed jobs are kept for inspection. */
  removeOnFail: false,
} as const;

const CLASSES = { validation: 0, session: 0, training: 1, collection: 2 } as const;
const CLASS_SIZE = 2 ** 19;

/** Lower runs first; never 0, which BullMQ reads as no priority at all. A retried rollout goes back beside its group. */
export function priorityOf(kind: RunRecord['kind'], groupSequence: number): number {
  return CLASSES[kind] * CLASS_SIZE + 1 + (groupSequence % (CLASS_SIZE - 1));
}

/** Classes of priority, named by the kind of run; sessions belong to validation. */
export const QUEUE_CLASSES = ['validation', 'training', 'collection'] as const;
export type QueueClass = (typeof QUEUE_CLASSES)[number];

/** BullMQ's scores of the jobs of one class (lua: priority * 2^32 + counter), first to last. */
export function classRange(name: QueueClass): [from: number, to: number] {
  const first = CLASSES[name] * CLASS_SIZE * 2 ** 32;
  return [first, first + CLASS_SIZE * 2 ** 32 - 1];
}

/** The sequence of the group of a waiting job by its score; the reverse of {@link priorityOf}. */
export const sequenceAt = (kind: RunRecord['kind'], score: number): number =>
  Math.floor(score / 2 ** 32) - CLASSES[kind] * CLASS_SIZE - 1;
