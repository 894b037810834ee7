/** The running attempts of this worker, and the only way to end them from outside. */
import type { AttemptName, CancelReason, RunningAttempt } from '@swefarm/shared';

export type AbortKind =
  | 'drain' // the worker ends, or must not wait: return the job to the queue at no cost to its budgets
  | 'cancelled' // the run or the rollout was cancelled: commit a cancelled result
  | 'superseded'; // another worker has claimed the rollout: write nothing more

/** Reason of the AbortSignal of an attempt that was ended from outside. */
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

type Running = { controller: AbortController; attempt: AttemptName | null };

export class ActiveAttempts {
  readonly #running = new Map<string, Running>();

  get count(): number {
    return this.#running.size;
  }

  /** Registers a rollout while `work` runs; the signal aborts with an {@link AttemptAborted}. */
  async during<T>(rolloutId: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    this.#running.set(rolloutId, { controller, attempt: null });
    try {
      return await work(controller.signal);
    } finally {
      this.#running.delete(rolloutId);
    }
  }

  claimed(rolloutId: string, attempt: AttemptName): void {
    const running = this.#running.get(rolloutId);
    if (running) running.attempt = attempt;
  }

  isEnding(rolloutId: string): boolean {
    return this.#running.get(rolloutId)?.controller.signal.aborted === true;
  }

  ids(): string[] {
    return [...this.#running.keys()];
  }

  list(): RunningAttempt[] {
    return [...this.#running].flatMap(([rollout_id, { attempt }]) =>
      attempt === null ? [] : [{ rollout_id, ...attempt }],
    );
  }

  /** Ends the attempt; `why` is for the journal. */
  abort(rolloutId: string, kind: AbortKind, reason?: CancelReason, why?: string): void {
    this.#running.get(rolloutId)?.controller.abort(new AttemptAborted(kind, reason, why));
  }

  abortAll(kind: AbortKind): void {
    for (const id of this.ids()) this.abort(id, kind);
  }
}
