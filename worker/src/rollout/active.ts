/** The running attempts of this worker, and the only way to end them from outside. */
import type { AttemptName, CancelReason, RunningAttempt } from '@swefarm/shared';
import { type AbortKind, AttemptAborted } from './abort.ts';

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

  abort(rolloutId: string, kind: AbortKind, reason?: CancelReason): void {
    this.#running.get(rolloutId)?.controller.abort(new AttemptAborted(kind, reason));
  }

  /** Ends the attempt and returns its job to the queue at no cost, although this worker continues; the journal records why. */
  handBack(rolloutId: string, why: string): void {
    this.#running.get(rolloutId)?.controller.abort(new AttemptAborted('drain', undefined, why));
  }

  abortAll(kind: AbortKind): void {
    for (const { controller } of this.#running.values()) controller.abort(new AttemptAborted(kind));
  }
}
