/** The connection of a call. A call whose connection closes without an answer becomes an orphan, which an equal request can take over. */
import { errorMessage, onAbort, sleep } from '@swefarm/shared';
import type { FastifyReply } from 'fastify';
import { Refusal } from '../access/refusal.ts';
import type { CallIdentity } from './callidentity.ts';
import type { CallRollout, CallTracker } from './calltracker.ts';

export type WaitLimits = {
  maxHoldSeconds: number;
  /** `rollout_timeout_s` of the row, counted from the first request of the call; null: no timeout. */
  timeoutSeconds: number | null;
};

/** Calls `act` once when the connection of a reply closes, or immediately if it is closed. */
export function whenClosed(reply: Pick<FastifyReply, 'raw'>, act: () => void): void {
  if (reply.raw.destroyed) act();
  else reply.raw.once('close', act);
}

/** Returns a signal that aborts when the connection of a reply closes; the signal of a closed connection is aborted. */
export function closedSignal(reply: Pick<FastifyReply, 'raw'>): AbortSignal {
  const closed = new AbortController();
  whenClosed(reply, () => closed.abort());
  return closed.signal;
}

/** Ends the call when its connection closes. Dispose the object when Fastify has the reply: a stop then no longer aborts `closed`. */
export class CallConnection implements Disposable {
  readonly #closed = new AbortController();
  readonly #reply: FastifyReply;
  readonly #calls: Pick<CallTracker, 'drop' | 'answered'>;
  readonly #identity: CallIdentity;
  readonly #timeoutSeconds: number | null;
  readonly #onStop: Disposable;
  #callId: string | null = null;
  /** Aborted when the caller disconnects, the gateway stops, or another request takes over the rollout. */
  readonly closed = this.#closed.signal;
  /** Time at which the call ends without an answer, in ms since the epoch. */
  deadline: number;
  /** The limit that sets the deadline. */
  limit: { seconds: number; field: 'max_hold_seconds' | 'rollout_timeout_s' };
  /** Whether the reply is no answer: if the caller repeats the request, the new request takes over the rollout. */
  isUnanswered = false;
  /** Whether the caller's id of the call is free: a later request with the same id gets a new rollout. */
  forgetsName = false;

  /** @param stopping aborted when the gateway stops */
  constructor(
    reply: FastifyReply,
    calls: Pick<CallTracker, 'drop' | 'answered'>,
    identity: CallIdentity,
    { maxHoldSeconds, timeoutSeconds }: WaitLimits,
    stopping: AbortSignal,
  ) {
    this.#reply = reply;
    this.#calls = calls;
    this.#identity = identity;
    this.#timeoutSeconds = timeoutSeconds;
    this.deadline = Date.now() + maxHoldSeconds * 1000;
    this.limit = { seconds: maxHoldSeconds, field: 'max_hold_seconds' };
    whenClosed(reply, () => {
      this.#closed.abort(new Error('the caller closed its connection'));
      // An error is only logged, because the heartbeat of the gateway sends the notice again.
      this.#reportEnd().catch((error: unknown) =>
        reply.log.debug({ err: errorMessage(error) }, 'end of a call not written'),
      );
    });
    this.#onStop = onAbort(stopping, () => this.#closed.abort(new Error('the gateway stops')));
  }

  async assign({ callId, startedAt }: Pick<CallRollout, 'callId' | 'startedAt'>): Promise<void> {
    this.#callId = callId;
    const seconds = this.#timeoutSeconds;
    if (seconds !== null && startedAt + seconds * 1000 < this.deadline) {
      this.deadline = startedAt + seconds * 1000;
      this.limit = { seconds, field: 'rollout_timeout_s' };
    }
    const { raw } = this.#reply;
    if (raw.destroyed && !raw.writableFinished) await this.#reportEnd();
  }

  /** Waits for `ms` milliseconds. Throws if `closed` is aborted. */
  async sleep(ms: number): Promise<void> {
    await sleep(ms, this.closed);
  }

  /** Closes the call, because another request has taken over its rollout. */
  supersede(): void {
    this.#callId = null;
    this.#closed.abort(new Superseded());
  }

  [Symbol.dispose](): void {
    this.#onStop[Symbol.dispose]();
  }

  async #reportEnd(): Promise<void> {
    if (this.#callId === null) return;
    const { named, graceMs } = this.#identity;
    const isAnswered = this.#reply.raw.writableFinished && !this.isUnanswered;
    if (isAnswered) await this.#calls.answered(this.#callId, named && !this.forgetsName);
    else await this.#calls.drop(this.#callId, graceMs);
  }
}

/** Refusal for a connection whose row the caller sent again after a failure of a sibling. */
export class Superseded extends Refusal {
  constructor() {
    const message = 'this row was sent again after a failure of its group: that request gets the answer';
    super(503, 'taken_up', message);
  }
}
