/** Retries a request where the fault table allows it, within the run's patience. */
import { exponentialBackoff, sleep } from '@swefarm/shared';
import { type Deadline, startDeadline } from '../deadline.ts';
import { type Pause, untilServing } from '../pause.ts';
import { FEW, PolicyFault } from './fault.ts';

const backoffMs = exponentialBackoff(250, 8_000);

export type RetryOptions = {
  /** Counted from the first fault after the last progress. */
  patienceSeconds: number;
  /** During a pause, patience does not run out and nothing is sent. */
  pause: Pause;
  /** True when a weight update interrupted the request: the retry is then free. Called once per fault. */
  excused: (fault: PolicyFault) => Promise<boolean>;
  signal: AbortSignal;
  /** True when the failed request returned usable tokens: patience and count restart. */
  progressed: () => boolean;
  /** True when the endpoint began to answer the failed request: patience restarts, the count does not. */
  answering: () => boolean;
  onFault: (fault: PolicyFault) => void;
  /** True when the next request goes to another endpoint: it is sent at once, with a count of its own. */
  elsewhere: (fault: PolicyFault) => boolean;
  onRetry: (fault: PolicyFault, waitSeconds: number, tries: number) => void;
  /** Called after each wait: an update may have begun meanwhile. */
  refresh: () => Promise<void>;
};

/** Throws the last PolicyFault when no retry is allowed, any other error at once, and the signal's reason when aborted. */
export async function retryFaults<T>(request: () => Promise<T>, options: RetryOptions): Promise<T> {
  using patience = openPatience(options);
  for (let tries = 1; ; ) {
    await untilServing(options.pause, options.signal);
    try {
      return await request();
    } catch (error) {
      if (!(error instanceof PolicyFault)) throw error;
      if (await options.excused(error)) continue;
      options.onFault(error);
      const progressed = options.progressed();
      if (progressed) tries = 1;
      const left = patience.leftSeconds(progressed || options.answering());
      if (left > 0 && options.elsewhere(error)) {
        tries = 1;
        continue;
      }
      const wait = waitBefore(error, tries, left);
      if (wait === null) throw error;
      options.onRetry(error, wait, tries++);
      await sleep(wait * 1000, options.signal);
      await options.refresh();
    }
  }
}

/** The seconds of patience that are left. An expired deadline stays expired, so each series of faults has its own. */
function openPatience({ patienceSeconds, pause }: RetryOptions) {
  let deadline: Deadline | null = null;
  return {
    leftSeconds(anew: boolean): number {
      if (anew) deadline?.[Symbol.dispose]();
      if (anew || deadline === null) deadline = startDeadline(patienceSeconds, pause, () => undefined);
      return deadline.remainingSeconds();
    },
    [Symbol.dispose]: () => deadline?.[Symbol.dispose](),
  };
}

/** Seconds to wait before the next request; null: do not send it. */
function waitBefore(fault: PolicyFault, tries: number, leftSeconds: number): number | null {
  if (fault.retry === 'never' || leftSeconds <= 0) return null;
  if (fault.retry === 'few' && tries >= FEW) return null;
  if (fault.retryAfterSeconds !== null && fault.retryAfterSeconds > leftSeconds) return null;
  // Jitter, so that a node's rollouts do not return to a restarted endpoint all at once.
  const backoff = (backoffMs(tries) / 1000) * (0.5 + Math.random());
  const wait = Math.max(fault.retryAfterSeconds ?? 0, backoff);
  return Math.min(wait, leftSeconds);
}
