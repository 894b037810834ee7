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

export class NodeBreaker {
  readonly #log: Logger;
  readonly #isHealthy: (last: FailedRollout | null) => Promise<boolean>;
  readonly #now: () => number;
  #inARow = 0;
  #reason: string | null = null;
  #waitMs = FIRST_CHECK_MS;
  #checkAt = 0;
  #isChecking = false;
  #last: FailedRollout | null = null;

  /** @param isHealthy tries a sandbox; errors count as false. `now` returns monotonic milliseconds. */
  constructor(
    log: Logger,
    isHealthy: (last: FailedRollout | null) => Promise<boolean>,
    now: () => number = () => performance.now(),
  ) {
    this.#log = log;
    this.#isHealthy = isHealthy;
    this.#now = now;
  }

  failed(failure: FailureClass, cause: string, sample: FailedRollout): void {
    if (!isOfTheNode(failure)) return;
    this.#inARow += 1;
    this.#last = sample;
    if (this.#inARow < IN_A_ROW || this.#reason !== null || this.#isChecking) return;
    void this.#openUnlessHealthy(`${this.#inARow} failures in a row, last ${failure}: ${cause}`, sample.run);
  }

  succeeded(): void {
    this.#inARow = 0;
    this.#waitMs = FIRST_CHECK_MS;
  }

  /** Returns why this node claims nothing; null when the node is healthy. */
  reason(): string | null {
    return this.#reason;
  }

  async recheck(): Promise<void> {
    if (this.#reason === null || this.#isChecking || this.#now() < this.#checkAt) return;
    if (!(await this.#check())) return this.#waitForCheck();
    this.#log.info('node is healthy again: claiming');
    this.#reason = null;
    this.#inARow = IN_A_ROW - 1;
  }

  async #openUnlessHealthy(why: string, run: string): Promise<void> {
    if (await this.#check()) {
      this.#log.warn({ run, why }, 'failures do not count against the node: a trial sandbox works');
      this.#inARow = 0;
      return;
    }
    this.#reason = `unhealthy: ${why}`;
    const check_in_ms = this.#waitMs;
    this.#log.error({ reason: this.#reason, check_in_ms }, 'node is unhealthy: claiming nothing');
    this.#waitForCheck();
  }

  async #check(): Promise<boolean> {
    this.#isChecking = true;
    const passed = await this.#isHealthy(this.#last).catch(() => false);
    this.#isChecking = false;
    return passed;
  }

  #waitForCheck(): void {
    this.#checkAt = this.#now() + this.#waitMs;
    this.#waitMs = Math.min(this.#waitMs * 2, LONGEST_CHECK_MS);
  }
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
