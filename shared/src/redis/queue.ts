/** Settings of the queue, which must be equal in the whole farm. BullMQ may deliver a job more than once, and does not retry jobs. */
import type { RunRecord } from '../records/job.ts';

/**
 * The queues of a farm: only one, so that priorities apply to the whole farm. Workers apply placement by image when they claim
 * (`worker/src/node/routing.ts`).
 */
export const QUEUES = ['rollouts'] as const;

/** Options for the Worker of BullMQ. All workers need equal values, because any worker may check for stalled jobs. */
export const queueSettings = {
  lockDuration: 20_000,
  stalledInterval: 5_000,
  /** Maximum wait of an idle worker in seconds: short, because a job that a worker returns to the queue wakes no other worker. */
  drainDelay: 1,
  /** Disables the limit of BullMQ; the journal limits the attempts. */
  maxStalledCount: 1e9,
} as const;

export const jobSettings = {
  attempts: 1,
  removeOnComplete: true,
  /** A failed job is caused by a bug, and is not removed so that it can be inspected. */
  removeOnFail: false,
} as const;

const CLASSES = { validation: 0, session: 0, training: 1, collection: 2 } as const;
const CLASS_SIZE = 2 ** 19;

/** Returns the class of a kind of run, 0 first. */
export const rankOf = (kind: RunRecord['kind']): number => CLASSES[kind];

/** Returns the priority of a job; jobs of lower numbers run first. Never 0, which BullMQ reads as no priority. */
export function priorityOf(kind: RunRecord['kind'], groupSequence: number): number {
  return rankOf(kind) * CLASS_SIZE + 1 + (groupSequence % (CLASS_SIZE - 1));
}

/** Classes of priority, named by the kind of run; sessions have the class of validation. */
export const QUEUE_CLASSES = ['validation', 'training', 'collection'] as const;
export type QueueClass = (typeof QUEUE_CLASSES)[number];

/** Returns the range of the scores of a class in BullMQ (priority * 2^32 + counter). */
export function classRange(name: QueueClass): [from: number, to: number] {
  const first = CLASSES[name] * CLASS_SIZE * 2 ** 32;
  return [first, first + CLASS_SIZE * 2 ** 32 - 1];
}

/** Returns the sequence number of a group from the score of its job; reverses {@link priorityOf}. */
export const sequenceAt = (kind: RunRecord['kind'], score: number): number =>
  Math.floor(score / 2 ** 32) - CLASSES[kind] * CLASS_SIZE - 1;
