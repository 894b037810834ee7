/**
 * A node whose engine or disk is sick fails whatever it claims, and fast: it would empty the queue. After failures in a row, of more
 * than one run or borne out by a sandbox of our own that fails too, it claims nothing until a check passes; then one more is enough.
 */
import { FAILURES, type FailureClass } from '@swefarm/shared';
import type { Logger } from 'pino';

/** Failures in a row, without a success between them, that make a node sick. */
const IN_A_ROW = 3;
const FIRST_CHECK_MS = 15_000;
const LONGEST_CHECK_MS = 300_000;

/** Whose rollout failed; by its image a sandbox is tried. */
export type FailedRollout = { run: string; image: string; instance: string };

export type NodeBreaker = {
  failed(failure: FailureClass, cause: string, sample: FailedRollout): void;
  succeeded(): void;
  /** Why nothing is claimed; null when the node is well. */
  reason(): string | null;
  /** Tries again when it is time to; call it often. */
  recheck(): Promise<void>;
};

/** @param well tries a sandbox; errors count as not well. `now`: monotonic milliseconds. */
export function createNodeBreaker(
  log: Logger,
  well: (last: FailedRollout | null) => Promise<boolean>,
  now: () => number = () => performance.now(),
): NodeBreaker {
  let row = 0;
  let reason: string | null = null;
  let waitMs = FIRST_CHECK_MS;
  let checkAt = 0;
  let checking = false;
  let last: FailedRollout | null = null;
  const runs = new Set<string>();
  const check = async (): Promise<boolean> => {
    checking = true;
    const passed = await well(last).catch(() => false);
    checking = false;
    return passed;
  };
  const forget = (): void => {
    row = 0;
    runs.clear();
  };
  const fall = (why: string): void => {
    reason = `sick: ${why}`;
    checkAt = now() + waitMs;
    log.error({ reason, check_in_ms: waitMs }, 'this node is sick and claims nothing more');
    waitMs = Math.min(waitMs * 2, LONGEST_CHECK_MS);
  };
  /** One run's failures may be its own doing, whatever they are called. */
  const doubt = async (why: string, run: string): Promise<void> => {
    if (!(await check())) return fall(why);
    log.warn({ run, why }, 'a sandbox of our own works: held against the run, not the node');
    forget();
  };
  return {
    failed(failure, cause, sample) {
      if (!isOfTheNode(failure)) return;
      row += 1;
      last = sample;
      if (runs.size < 2) runs.add(sample.run);
      if (row < IN_A_ROW || reason !== null) return;
      const why = `${row} failures in a row, last ${failure}: ${cause}`;
      if (runs.size > 1) fall(why);
      else if (!checking) void doubt(why, sample.run);
    },
    succeeded() {
      forget();
      waitMs = FIRST_CHECK_MS;
    },
    reason: () => reason,
    async recheck() {
      if (reason === null || checking || now() < checkAt) return;
      if (!(await check())) {
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
