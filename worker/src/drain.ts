/** A node that somebody empties by hand: its workers claim nothing, and hand back what does not end within the grace period. */
import type { Logger } from 'pino';
import type { ActiveAttempts } from './active.ts';

export type HandDrain = {
  /** What the farm says of this node now; cheap to repeat. */
  set(drained: boolean): void;
  /** Why nothing is claimed; null when it is not drained. */
  reason(): string | null;
  [Symbol.dispose](): void;
};

export function createHandDrain(active: ActiveAttempts, graceMs: number, log: Logger): HandDrain {
  let timer: NodeJS.Timeout | null = null;
  return {
    set(drained) {
      if (drained && timer === null) {
        log.info({ active: active.count, grace_ms: graceMs }, 'this node is to be emptied');
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
