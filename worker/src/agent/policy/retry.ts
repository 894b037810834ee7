/** Decides when a failed request is sent again: as the table of faults allows, within the patience of the run. */
import { exponentialBackoff } from '@swefarm/shared';
import { type Deadline, startDeadline } from '../deadline.ts';
import type { Pause } from '../pause.ts';
import { FEW, type PolicyFault } from './fault.ts';

const backoffMs = exponentialBackoff(250, 8_000);

/**
 * Counts the seconds of patience since the first fault after the last progress, without the pauses of the policy. An expired deadline
 * cannot be restarted, so each series of faults has a new one.
 */
export function openPatience(seconds: number, pause: Pause) {
  let deadline: Deadline | null = null;
  return {
    leftSeconds(anew: boolean): number {
      if (anew) deadline?.[Symbol.dispose]();
      if (anew || deadline === null) deadline = startDeadline(seconds, pause, () => undefined);
      return deadline.remainingSeconds();
    },
    [Symbol.dispose]: () => deadline?.[Symbol.dispose](),
  };
}

/** Returns the seconds to wait before the next request; null: send no further request. */
export function waitBefore(fault: PolicyFault, tries: number, leftSeconds: number): number | null {
  if (fault.retry === 'never' || leftSeconds <= 0) return null;
  if (fault.retry === 'few' && tries >= FEW) return null;
  if (fault.retryAfterSeconds !== null && fault.retryAfterSeconds > leftSeconds) return null;
  // The random factor spreads the requests of the node's rollouts to a restarted endpoint.
  const backoff = (backoffMs(tries) / 1000) * (0.5 + Math.random());
  const wait = Math.max(fault.retryAfterSeconds ?? 0, backoff);
  return Math.min(wait, leftSeconds);
}
