/**
 * A node whose engine or disk is sick fails whatever it claims, and fast: it would empty the queue. After failures in a
 * row it claims nothing until a check passes, and then one more failure is enough.
 */
import { FAILURES, type FailureClass } from '@swefarm/shared';
import type { Logger } from 'pino';

/** Failures in a row, without a success between them, that make a node sick. */
const IN_A_ROW = 3;
const FIRST_CHECK_MS = 15_000;
const LONGEST_CHECK_MS = 300_000;

export type Sick = {
  failed(failure: FailureClass, cause: string): void;
  succeeded(): void;
  /** Why nothing is claimed; null when the node is well. */
  reason(): string | null;
  /** Asks `well` when it is time to; call it often. Errors count as not well. */
  recheck(well: () => Promise<boolean>): Promise<void>;
};

/** `now`: monotonic milliseconds. */
export function createSick(log: Logger, now: () => number = () => performance.now()): Sick {
  let row = 0;
  let reason: string | null = null;
  let waitMs = FIRST_CHECK_MS;
  let checkAt = 0;
  let checking = false;
  return {
    failed(failure, cause) {
      if (!isOfTheNode(failure)) return;
      row += 1;
      if (row < IN_A_ROW || reason !== null) return;
      reason = `sick: ${row} failures in a row, last ${failure}: ${cause}`;
      checkAt = now() + waitMs;
      log.error({ reason, check_in_ms: waitMs }, 'this node is sick and claims nothing more');
      waitMs = Math.min(waitMs * 2, LONGEST_CHECK_MS);
    },
    succeeded() {
      row = 0;
      waitMs = FIRST_CHECK_MS;
    },
    reason: () => reason,
    async recheck(well) {
      if (reason === null || checking || now() < checkAt) return;
      checking = true;
      const passed = await well().catch(() => false);
      checking = false;
      if (!passed) {
        checkAt = now() + waitMs;
        waitMs = Math.min(waitMs * 2, LONGEST_CHECK_MS);
        return;
      }
      log.info('the node looks well again: claiming');
      reason = null;
      row = IN_A_ROW - 1;
    },
  };
}

/** What another node is likely to do better: the engine, its containers, memory and disk. */
export function isOfTheNode(failure: FailureClass): boolean {
  const { stage, where } = FAILURES[failure];
  return where === 'elsewhere' && (stage === 'sandbox' || stage === 'evaluation');
}
