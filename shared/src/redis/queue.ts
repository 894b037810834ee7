/** Settings of the queue, equal in the whole farm. BullMQ delivers jobs at least once, without retries of its own. */
import type { RunRecord } from '../records/job.ts';

/**
 * The queues of a farm. There is one, so that priorities apply to the whole farm; placement by image happens at the claim
 * (`worker/src/node/routing.ts`).
 */
export const QUEUES = ['rollouts'] as const;

/** Options for BullMQ's Worker. All workers need equal values, because any of them checks for stalled jobs. */
export const queueSettings = {
  lockDuration: 20_000,
  stalledInterval: 5_000,
  /** Seconds; short, because a handed back job wakes no idle worker. */
  drainDelay: 1,
  /** Disables BullMQ's limit; the journal decides. */
  maxStalledCount: 1e9,
} as const;

export const jobSettings = {
  attempts: 1,
  removeOnComplete: true,
  /** A failed job is a bug, and stays for inspection. */
  removeOnFail: false,
} as const;

const CLASSES = { validation: 0, session: 0, training: 1, collection: 2 } as const;
const CLASS_SIZE = 2 ** 19;

/** Returns the priority of a job: lower first, never 0, which BullMQ reads as no priority. */
export function priorityOf(kind: RunRecord['kind'], groupSequence: number): number {
  return CLASSES[kind] * CLASS_SIZE + 1 + (groupSequence % (CLASS_SIZE - 1));
}

/** Classes of priority, named by the kind of run; sessions belong to validation. */
export const QUEUE_CLASSES = ['validation', 'training', 'collection'] as const;
export type QueueClass = (typeof QUEUE_CLASSES)[number];

/** Returns the range of BullMQ's scores (priority * 2^32 + counter) of a class. */
export function classRange(name: QueueClass): [from: number, to: number] {
  const first = CLASSES[name] * CLASS_SIZE * 2 ** 32;
  return [first, first + CLASS_SIZE * 2 ** 32 - 1];
}

/** Returns the sequence of a group by the score of its job; reverses {@link priorityOf}. */
export const sequenceAt = (kind: RunRecord['kind'], score: number): number =>
  Math.floor(score / 2 ** 32) - CLASSES[kind] * CLASS_SIZE - 1;
