/** Reasons to end an attempt from outside. An AttemptAborted is the reason of the attempt's AbortSignal. */
import type { CancelReason } from '@swefarm/shared';

export type AbortKind =
  | 'drain' // the worker ends, or must not wait: return the job to the queue at no cost to its budgets
  | 'cancelled' // the run or the rollout was cancelled: commit a cancelled result
  | 'superseded'; // another worker has claimed the rollout: write nothing more

export class AttemptAborted extends Error {
  override readonly name = 'AttemptAborted';
  readonly kind: AbortKind;
  readonly cancelReason: CancelReason;
  readonly why: string | null;

  constructor(kind: AbortKind, cancelReason: CancelReason = 'cancelled', why: string | null = null) {
    super(`attempt ended: ${kind === 'cancelled' ? cancelReason : kind}`);
    this.kind = kind;
    this.cancelReason = cancelReason;
    this.why = why;
  }
}

/** Returns the error that ended the attempt from outside; null: none did. */
export const abortOf = (signal: AbortSignal): AttemptAborted | null =>
  signal.aborted && signal.reason instanceof AttemptAborted ? signal.reason : null;
