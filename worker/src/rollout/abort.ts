/** Why an attempt is ended from outside. It travels as the reason of the attempt's AbortSignal. */
import type { CancelReason } from '@swefarm/shared';

export type AbortKind =
  | 'drain' // this worker ends, or must not wait: hand the job back, at no cost to its budgets
  | 'cancelled' // the run or the rollout was cancelled: commit that
  | 'superseded'; // another worker has claimed it since: leave everything to it

export class AttemptAborted extends Error {
  override readonly name = 'AttemptAborted';
  readonly kind: AbortKind;
  /** Set for kind `cancelled`. */
  readonly cancelReason: CancelReason;
  /** The reason that the journal records. */
  readonly why: string | null;

  constructor(kind: AbortKind, cancelReason: CancelReason = 'cancelled', why: string | null = null) {
    super(`attempt ended: ${kind === 'cancelled' ? cancelReason : kind}`);
    this.kind = kind;
    this.cancelReason = cancelReason;
    this.why = why;
  }
}

/** How the attempt was ended from outside; null when it was not. */
export function abortKind(signal: AbortSignal): AbortKind | null {
  return abortOf(signal)?.kind ?? null;
}

/** The error by which the attempt was ended from outside; null when it was not. */
export const abortOf = (signal: AbortSignal): AttemptAborted | null =>
  signal.aborted && signal.reason instanceof AttemptAborted ? signal.reason : null;
