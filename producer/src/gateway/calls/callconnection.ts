/** A connection that is held until its rollout is done: what closes unanswered becomes an orphan, what was answered is forgotten. */
import { setTimeout as sleep } from 'node:timers/promises';
import { errorMessage } from '@swefarm/shared';
import type { FastifyReply } from 'fastify';
import { Refusal } from '../access/refusal.ts';
import type { CallDesk, CallIdentity, Found } from './calltracker.ts';

export type Hold = {
  /** Aborted when the caller is gone, the gateway goes, or another request took its rollout up. */
  readonly gone: AbortSignal;
  /** Milliseconds since the epoch. */
  readonly until: number;
  /** The seconds that end the hold, and who set them. */
  readonly limit: { seconds: number; field: 'max_hold_seconds' | 'rollout_timeout_s' };
  has(found: Pick<Found, 'callId' | 'begunAt'>): Promise<void>;
  sleep(ms: number): Promise<void>;
  /** What is sent is no answer to the call. */
  lost(): void;
  /** The answer is given once: the same name asks for a fresh rollout. */
  forget(): void;
  /** Another request has its rollout from now on. */
  supersede(): void;
  done(): void;
};

export type HoldLimits = {
  maxHoldSeconds: number;
  /** The row's own, counted from the call's beginning. */
  timeoutSeconds: number | null;
};

/** Once, when the connection of a reply is closed: at once where that has happened, since it is told only to who listened. */
export function whenClosed(reply: Pick<FastifyReply, 'raw'>, act: () => void): void {
  if (reply.raw.destroyed) act();
  else reply.raw.once('close', act);
}

export function heldCall(
  reply: FastifyReply,
  desk: Pick<CallDesk, 'drop' | 'answered'>,
  asked: CallIdentity,
  limits: HoldLimits,
  stopping: AbortSignal,
): Hold {
  const closed = new AbortController();
  const { timeoutSeconds, maxHoldSeconds } = limits;
  const latest = Date.now() + maxHoldSeconds * 1000;
  let until = latest;
  let callId: string | null = null;
  let lost = false;
  let once = false;
  const onStop = (): void => closed.abort(new Error('the gateway stops'));
  const settle = async (): Promise<void> => {
    if (callId === null) return;
    if (!reply.raw.writableFinished || lost) await desk.drop(callId, asked.graceMs);
    else await desk.answered(callId, asked.named && !once);
  };
  const settleQuietly = (): void => {
    // With Redis away the call stays as it is; its gateway's death or the sweep decides later.
    settle().catch((error: unknown) => reply.log.debug({ err: errorMessage(error) }, 'call not settled'));
  };
  whenClosed(reply, () => {
    closed.abort(new Error('the caller closed its connection'));
    settleQuietly();
  });
  stopping.addEventListener('abort', onStop, { once: true });
  if (stopping.aborted) onStop();
  return {
    gone: closed.signal,
    get until() {
      return until;
    },
    get limit(): Hold['limit'] {
      return until === latest || timeoutSeconds === null
        ? { seconds: maxHoldSeconds, field: 'max_hold_seconds' }
        : { seconds: timeoutSeconds, field: 'rollout_timeout_s' };
    },
    async has(found) {
      callId = found.callId;
      if (timeoutSeconds !== null) until = Math.min(latest, found.begunAt + timeoutSeconds * 1000);
      if (reply.raw.destroyed && !reply.raw.writableFinished) await settle();
    },
    sleep: async (ms) => await sleep(ms, undefined, { signal: closed.signal }),
    lost() {
      lost = true;
    },
    forget() {
      once = true;
    },
    supersede() {
      callId = null;
      closed.abort(new Superseded());
    },
    done: () => stopping.removeEventListener('abort', onStop),
  };
}

/** Told to a connection whose stream was ended by a failure of its group: whoever sent the row again has its rollout. */
export class Superseded extends Refusal {
  constructor() {
    super(
      503,
      'taken_up',
      'this row was sent again after a failure of its group: its rollout is answered there',
    );
  }
}
