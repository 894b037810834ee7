/** Reads the results of each run once, for all calls that wait for rollouts of the run. */
import {
  describeUnreadable,
  errorMessage,
  type Farm,
  type Log,
  type Result,
  SwefarmError,
  sleepAtMost,
  untilAborted,
} from '@swefarm/shared';
import { Refusal } from '../access/refusal.ts';

/** The promise of a result; `calls`: number of calls that wait for the result. */
type Waiter = PromiseWithResolvers<Result> & { calls: number };
/** `waiters`: by rollout id. */
type Reader = { waiters: Map<string, Waiter>; started: Promise<void> };

const BLOCK_MS = 5_000;
const BATCH = 200;
const AGAIN_MS = 1_000;

export class ResultReaders {
  readonly #readers = new Map<string, Reader>();
  readonly #farm: Farm;
  readonly #log: Log;
  readonly #signal: AbortSignal;

  constructor(farm: Farm, log: Log, signal: AbortSignal) {
    this.#farm = farm;
    this.#log = log;
    this.#signal = signal;
  }

  /**
   * Resolves to the result of a rollout when the result is committed.
   *
   * @throws the reason of `signal`; Refusal `run_gone` if the run expired; SwefarmError `result_unreadable`
   */
  async wait(runId: string, rolloutId: string, signal: AbortSignal): Promise<Result> {
    signal.throwIfAborted();
    const { waiters, started } = this.#readerOf(runId);
    const waiter = waiters.get(rolloutId) ?? { ...Promise.withResolvers<Result>(), calls: 0 };
    waiters.set(rolloutId, waiter);
    waiter.calls += 1;
    waiter.promise.catch(() => undefined);
    try {
      await started;
      // The result may have been committed before the reader started.
      const committed = await this.#farm.results.get(rolloutId);
      return committed ?? (await untilAborted(waiter.promise, signal));
    } finally {
      waiter.calls -= 1;
      if (waiter.calls === 0) waiters.delete(rolloutId);
    }
  }

  #readerOf(runId: string): Reader {
    const known = this.#readers.get(runId);
    if (known) return known;
    const started = this.#farm.results.latest(runId).then((latest) => {
      void this.#follow(runId, reader, latest);
    });
    const reader: Reader = { waiters: new Map(), started };
    this.#readers.set(runId, reader);
    started.catch(() => this.#readers.delete(runId));
    return reader;
  }

  /** Reads results until no call waits. */
  async #follow(runId: string, reader: Reader, from: string): Promise<void> {
    let cursor: string | null = from;
    while (cursor !== null && reader.waiters.size > 0 && !this.#signal.aborted) {
      try {
        cursor = await this.#readBatch(runId, reader, cursor);
      } catch (error) {
        if (this.#signal.aborted) break;
        this.#log.warn({ run: runId, err: errorMessage(error) }, 'results not read: retrying');
        await sleepAtMost(AGAIN_MS, this.#signal);
      }
    }
    this.#readers.delete(runId);
  }

  /** Returns the cursor of the next batch; null: the run expired. */
  async #readBatch(runId: string, { waiters }: Reader, cursor: string): Promise<string | null> {
    const options = { blockMs: BLOCK_MS, count: BATCH, signal: this.#signal };
    const batch = await this.#farm.results.read(runId, cursor, options);
    for (const { result } of batch.results) {
      waiters.get(result.rollout_id)?.resolve(result);
    }
    for (const entry of batch.unreadable) {
      this.#log.error({ run: runId, ...entry }, 'result unreadable: skipped');
      const unreadable = new SwefarmError('result_unreadable', describeUnreadable(entry));
      waiters.get(entry.rollout_id ?? '')?.reject(unreadable);
    }
    if (batch.last_id !== cursor || (await this.#farm.runs.exists(runId))) return batch.last_id;
    const gone = new Refusal(503, 'run_gone', `run ${runId} is no longer in Redis`);
    for (const waiter of waiters.values()) waiter.reject(gone);
    return null;
  }
}
