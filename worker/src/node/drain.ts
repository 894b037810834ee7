/** Grace periods, and the drain of a node by an operator: its workers claim nothing, and hand back rollouts after the grace period. */
import type { Logger } from 'pino';
import type { ActiveAttempts } from '../rollout/active.ts';

const LEAST_GRACE_MS = 1_000;
/** Maximum time at the end of the grace period for handing back rollouts and removing containers. */
const TIDY_MS = 10_000;
const TIDY_SHARE = 0.8;

/** Phases of a stop, in milliseconds: rollouts may finish, then they are handed back to the queue; after `wholeMs` the worker exits. */
export type Grace = { finishMs: number; handBackMs: number; wholeMs: number };

export function splitGrace(seconds: number): Grace {
  const wholeMs = Math.max(LEAST_GRACE_MS, seconds * 1000);
  const tidyMs = Math.min(TIDY_MS, wholeMs * TIDY_SHARE);
  return { finishMs: wholeMs - tidyMs, handBackMs: tidyMs * 0.9, wholeMs };
}

export type ManualDrain = ReturnType<typeof createManualDrain>;

export function createManualDrain(active: ActiveAttempts, graceMs: number, log: Logger) {
  let timer: NodeJS.Timeout | null = null;
  return {
    /** Sets whether this node is drained. Setting the same value again has no effect. */
    set(drained: boolean): void {
      if (drained && timer === null) {
        log.info({ active: active.count, grace_ms: graceMs }, 'node drained by hand');
        timer = setTimeout(() => active.abortAll('drain'), graceMs);
      }
      if (!drained && timer !== null) {
        clearTimeout(timer);
        timer = null;
        log.info('drain of this node undone');
      }
    },
    reason: () => (timer === null ? null : 'drained by hand (undo: swefarm drain NODE --undo)'),
    [Symbol.dispose]: () => clearTimeout(timer ?? undefined),
  };
}
