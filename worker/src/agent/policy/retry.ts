/** When a failed request is sent again: as the fault table allows, within the run's patience. */
import { exponentialBackoff } from '@swefarm/shared';
import { type Deadline, startDeadline } from '../deadline.ts';
import type { Pause } from '../pause.ts';
import { FEW, type PolicyFault } from './fault.ts';

const backoffMs = exponentialBackoff(250, 8_000);

/**
 * Counts the seconds of patience since the first fault after the last progress, without the pauses of the policy. An expired deadline
 * stays expired, so each series of faults has its own.
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

/** Seconds to wait before the next request; null: do not send it. */
export function waitBefore(fault: PolicyFault, tries: number, leftSeconds: number): number | null {
  if (fault.retry === 'never' || leftSeconds <= 0) return null;
  if (fault.retry === 'few' && tries >= FEW) return null;
  if (fault.retryAfterSeconds !== null && fault.retryAfterSeconds > leftSeconds) return null;
  // Jitter, so that a node's rollouts do not return to a restarted endpoint all at once.
  const backoff = (backoffMs(tries) / 1000) * (0.5 + Math.random());
  const wait = Math.max(fault.retryAfterSeconds ?? 0, backoff);
  return Math.min(wait, leftSeconds);
}
