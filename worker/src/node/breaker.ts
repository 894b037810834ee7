/**
 * A node with a broken engine or disk would fail every rollout of the queue. The breaker opens after several failures in a row if a trial
 * sandbox fails too, because the code of rollouts may also cause failures. While the breaker is open, the node claims nothing until a check
 * passes; then one more confirmed failure opens the breaker again.
 */
import { diskIsFull, INTERNAL_SPEC } from '@swefarm/sandbox';
import { FAILURES, type FailureClass, RolloutFailure } from '@swefarm/shared';
import type { Logger } from 'pino';
import type { AttemptServices, FailedRollout } from '../rollout/context.ts';

/** Number of failures in a row, without a success between them, that open the breaker. */
const IN_A_ROW = 3;
const FIRST_CHECK_MS = 15_000;
const LONGEST_CHECK_MS = 300_000;

export type NodeBreaker = ReturnType<typeof createBreaker>;

/** @param isHealthy tries a sandbox; errors count as false. `now` returns monotonic milliseconds. */
export function createBreaker(
  log: Logger,
  isHealthy: (last: FailedRollout | null) => Promise<boolean>,
  now: () => number = () => performance.now(),
) {
  let inARow = 0;
  let reason: string | null = null;
  let waitMs = FIRST_CHECK_MS;
  let checkAt = 0;
  let isChecking = false;
  let last: FailedRollout | null = null;
  const check = async (): Promise<boolean> => {
    isChecking = true;
    const passed = await isHealthy(last).catch(() => false);
    isChecking = false;
    return passed;
  };
  const waitForCheck = (): void => {
    checkAt = now() + waitMs;
    waitMs = Math.min(waitMs * 2, LONGEST_CHECK_MS);
  };
  const openUnlessHealthy = async (why: string, run: string): Promise<void> => {
    if (await check()) {
      log.warn({ run, why }, 'failures do not count against the node: a trial sandbox works');
      inARow = 0;
      return;
    }
    reason = `unhealthy: ${why}`;
    log.error({ reason, check_in_ms: waitMs }, 'node is unhealthy: claiming nothing');
    waitForCheck();
  };
  return {
    failed(failure: FailureClass, cause: string, sample: FailedRollout): void {
      if (!isOfTheNode(failure)) return;
      inARow += 1;
      last = sample;
      if (inARow < IN_A_ROW || reason !== null || isChecking) return;
      void openUnlessHealthy(`${inARow} failures in a row, last ${failure}: ${cause}`, sample.run);
    },
    succeeded(): void {
      inARow = 0;
      waitMs = FIRST_CHECK_MS;
    },
    /** Returns why this node claims nothing; null when the node is healthy. */
    reason: (): string | null => reason,
    async recheck(): Promise<void> {
      if (reason === null || isChecking || now() < checkAt) return;
      if (!(await check())) return waitForCheck();
      log.info('node is healthy again: claiming');
      reason = null;
      inARow = IN_A_ROW - 1;
    },
  };
}

/** Returns whether a failure is of the engine, containers, memory or disk of this node, so that another node probably avoids it. */
export function isOfTheNode(failure: FailureClass): boolean {
  const { stage, where } = FAILURES[failure];
  return where === 'elsewhere' && (stage === 'sandbox' || stage === 'evaluation');
}

const TRIAL_MS = 60_000;

/**
 * Starts a trial sandbox from the image of the last failed rollout, to distinguish faults of the node from faults of a run. Returns false
 * when the node is at fault. A missing image is not the node's fault.
 */
export async function trySandbox(
  { runtime, owner }: Pick<AttemptServices, 'runtime' | 'owner'>,
  sample: Pick<FailedRollout, 'image' | 'instance'> | null,
  stop: AbortSignal,
): Promise<boolean> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(TRIAL_MS)]);
  if (!(await runtime.check(signal)).usable || (await diskIsFull(runtime))) return false;
  // A dry run on `host` needs no image and no engine.
  if (sample === null || !runtime.isolates) return true;
  try {
    const image = await runtime.ensureImage(sample.image, signal, sample.instance);
    const spec = { ...INTERNAL_SPEC, image, owner: { ...owner, rollout_id: 'trial', attempt: 0 } };
    await using container = await runtime.start(spec, signal);
    const options = { timeoutMs: TRIAL_MS, maxOutputBytes: 1_000, signal };
    return (await container.exec(['/bin/sh', '-c', 'exit 0'], options)).exitCode === 0;
  } catch (error) {
    return error instanceof RolloutFailure && !isOfTheNode(error.failureClass);
  }
}
