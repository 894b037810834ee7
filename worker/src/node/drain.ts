/** The drain of a node by hand: its workers claim nothing, and hand back what does not end within the grace period. */
import type { Logger } from 'pino';
import type { ActiveAttempts } from '../rollout/active.ts';

/** What comes after it is SIGKILL. */
const LEAST_GRACE_MS = 1_000;
/** Of the grace period the end is for handing back and for removing containers. */
const TIDY_MS = 10_000;
const TIDY_SHARE = 0.8;

/** How a stop is spent, in milliseconds: rollouts may end by themselves, then are handed back; when all is over, exit. */
export type Grace = { finishMs: number; handBackMs: number; wholeMs: number };

export function splitGrace(seconds: number): Grace {
  const wholeMs = Math.max(LEAST_GRACE_MS, seconds * 1000);
  const tidyMs = Math.min(TIDY_MS, wholeMs * TIDY_SHARE);
  return { finishMs: wholeMs - tidyMs, handBackMs: tidyMs * 0.9, wholeMs };
}

export type ManualDrain = {
  /** Whether the farm has this node drained now; cheap to repeat. */
  set(drained: boolean): void;
  /** Why nothing is claimed; null when it is not drained. */
  reason(): string | null;
  [Symbol.dispose](): void;
};

export function createManualDrain(active: ActiveAttempts, graceMs: number, log: Logger): ManualDrain {
  let timer: NodeJS.Timeout | null = null;
  return {
    set(drained) {
      if (drained && timer === null) {
        log.info({ active: active.count, grace_ms: graceMs }, 'this node is drained by hand');
        timer = setTimeout(() => active.abortAll('drain'), graceMs);
      }
      if (!drained && timer !== null) {
        clearTimeout(timer);
        timer = null;
        log.info('this node may claim again');
      }
    },
    reason: () => (timer === null ? null : 'drained by hand (take it back: swefarm drain NODE --undo)'),
    [Symbol.dispose]() {
      if (timer !== null) clearTimeout(timer);
    },
  };
}
