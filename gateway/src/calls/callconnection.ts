/** The connection of a call, open until its rollout is done: a call whose connection closes unanswered becomes an orphan. */
import { errorMessage, onAbort, sleep } from '@swefarm/shared';
import type { FastifyReply } from 'fastify';
import { Refusal } from '../access/refusal.ts';
import type { CallIdentity } from './callidentity.ts';
import type { CallRollout, CallTracker } from './calltracker.ts';

export type WaitLimits = {
  maxHoldSeconds: number;
  /** The row's own, counted from the first request of the call. */
  timeoutSeconds: number | null;
};

/** Once, when the connection of a reply is closed: at once where that has happened, since only earlier listeners get the event. */
export function whenClosed(reply: Pick<FastifyReply, 'raw'>, act: () => void): void {
  if (reply.raw.destroyed) act();
  else reply.raw.once('close', act);
}

/** Dispose it when the answer is sent: the close of the connection then decides what becomes of the call. */
export class CallConnection implements Disposable {
  readonly #closed = new AbortController();
  readonly #reply: FastifyReply;
  readonly #calls: Pick<CallTracker, 'drop' | 'answered'>;
  readonly #identity: CallIdentity;
  readonly #limits: WaitLimits;
  readonly #latest: number;
  readonly #onStop: Disposable;
  #deadline: number;
  #callId: string | null = null;
  #isUnanswered = false;
  #forgetsName = false;

  /** `stopping`: the gateway ends. */
  constructor(
    reply: FastifyReply,
    calls: Pick<CallTracker, 'drop' | 'answered'>,
    identity: CallIdentity,
    limits: WaitLimits,
    stopping: AbortSignal,
  ) {
    this.#reply = reply;
    this.#calls = calls;
    this.#identity = identity;
    this.#limits = limits;
    this.#latest = Date.now() + limits.maxHoldSeconds * 1000;
    this.#deadline = this.#latest;
    whenClosed(reply, () => {
      this.#closed.abort(new Error('the caller closed its connection'));
      // With Redis away the call stays as it is; the death of its gateway or the sweep decides later.
      this.#reportEnd().catch((error: unknown) =>
        reply.log.debug({ err: errorMessage(error) }, 'the end of a call could not be written'),
      );
    });
    this.#onStop = onAbort(stopping, () => this.#closed.abort(new Error('the gateway stops')));
  }

  /** Aborted when the caller closes, the gateway stops, or another request takes the rollout up. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  /** When the call ends without an answer; ms since the epoch. */
  get deadline(): number {
    return this.#deadline;
  }

  /** What sets the deadline. */
  get limit(): { seconds: number; field: 'max_hold_seconds' | 'rollout_timeout_s' } {
    const { maxHoldSeconds, timeoutSeconds } = this.#limits;
    return this.#deadline === this.#latest || timeoutSeconds === null
      ? { seconds: maxHoldSeconds, field: 'max_hold_seconds' }
      : { seconds: timeoutSeconds, field: 'rollout_timeout_s' };
  }

  /** It waits for this rollout from now on. */
  async assign({ callId, startedAt }: Pick<CallRollout, 'callId' | 'startedAt'>): Promise<void> {
    this.#callId = callId;
    const { timeoutSeconds } = this.#limits;
    if (timeoutSeconds !== null) {
      this.#deadline = Math.min(this.#latest, startedAt + timeoutSeconds * 1000);
    }
    const { raw } = this.#reply;
    if (raw.destroyed && !raw.writableFinished) await this.#reportEnd();
  }

  /** Throws when the connection closes before. */
  async sleep(ms: number): Promise<void> {
    await sleep(ms, this.#closed.signal);
  }

  /** The reply does not answer the call: the same request again takes its rollout up. */
  markUnanswered(): void {
    this.#isUnanswered = true;
  }

  /** The answer is given once: the same name asks for a fresh rollout. */
  forgetName(): void {
    this.#forgetsName = true;
  }

  /** Another request has its rollout from now on. */
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
    const isAnswered = this.#reply.raw.writableFinished && !this.#isUnanswered;
    if (isAnswered) await this.#calls.answered(this.#callId, named && !this.#forgetsName);
    else await this.#calls.drop(this.#callId, graceMs);
  }
}

/** Answers a connection whose stream ended by a failure of a sibling: the row was sent again, and that request has its rollout. */
export class Superseded extends Refusal {
  constructor() {
    super(
      503,
      'taken_up',
      'this row was sent again after a failure of its group: its rollout is answered there',
    );
  }
}
