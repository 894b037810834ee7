/** One reader per run hands results to the calls that wait for them: Redis is asked per run, not per call. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  describeUnreadable,
  errorMessage,
  type Farm,
  type Log,
  type Result,
  SwefarmError,
} from '@swefarm/shared';
import { Refusal } from '../access/refusal.ts';

export type Results = {
  /**
   * The result of a rollout, committed already or later.
   *
   * @throws what `signal` aborts with; Refusal `run_gone` when Redis lost the run; SwefarmError `result_unreadable`
   */
  wait(runId: string, rolloutId: string, signal: AbortSignal): Promise<Result>;
};

type Waiter = { resolve: (result: Result) => void; reject: (reason: unknown) => void };
type Reader = { waiters: Map<string, Set<Waiter>>; started: Promise<void> };

const BLOCK_MS = 5_000;
const BATCH = 200;
const AGAIN_MS = 1_000;

export function createResultReaders(farm: Farm, log: Log, signal: AbortSignal): Results {
  const readers = new Map<string, Reader>();

  const follow = async (runId: string, reader: Reader, from: string): Promise<void> => {
    let cursor = from;
    while (reader.waiters.size > 0 && !signal.aborted) {
      try {
        const batch = await farm.results.read(runId, cursor, { blockMs: BLOCK_MS, count: BATCH, signal });
        const before = cursor;
        cursor = batch.last_id;
        for (const { result } of batch.results) {
          for (const waiter of reader.waiters.get(result.rollout_id) ?? []) waiter.resolve(result);
        }
        for (const entry of batch.unreadable) {
          log.error({ run: runId, ...entry }, 'a result cannot be read; it is skipped');
          const unreadable = new SwefarmError('result_unreadable', describeUnreadable(entry));
          for (const waiter of reader.waiters.get(entry.rollout_id ?? '') ?? []) waiter.reject(unreadable);
        }
        if (batch.last_id === before && !(await farm.runs.exists(runId))) {
          const gone = new Refusal(503, 'run_gone', `run ${runId} is not in Redis any more`);
          for (const waiters of reader.waiters.values()) for (const waiter of waiters) waiter.reject(gone);
          break;
        }
      } catch (error) {
        if (signal.aborted) break;
        log.warn({ run: runId, err: errorMessage(error) }, 'results cannot be read; trying again');
        await sleep(AGAIN_MS, undefined, { signal }).catch(() => undefined);
      }
    }
    readers.delete(runId);
  };

  const readerOf = (runId: string): Reader => {
    const known = readers.get(runId);
    if (known) return known;
    const waiters = new Map<string, Set<Waiter>>();
    const started = farm.results.latest(runId).then((latest) => {
      void follow(runId, reader, latest);
    });
    const reader: Reader = { waiters, started };
    readers.set(runId, reader);
    started.catch(() => readers.delete(runId));
    return reader;
  };

  return {
    async wait(runId, rolloutId, until) {
      until.throwIfAborted();
      const settled = Promise.withResolvers<Result>();
      settled.promise.catch(() => undefined);
      const reader = readerOf(runId);
      const waiter: Waiter = settled;
      const alike = reader.waiters.get(rolloutId) ?? new Set();
      reader.waiters.set(rolloutId, alike.add(waiter));
      const onAbort = (): void => settled.reject(until.reason);
      until.addEventListener('abort', onAbort, { once: true });
      try {
        await reader.started;
        // What was committed before the reader began.
        const known = await farm.results.get(rolloutId);
        return known ?? (await settled.promise);
      } finally {
        until.removeEventListener('abort', onAbort);
        alike.delete(waiter);
        if (alike.size === 0) reader.waiters.delete(rolloutId);
      }
    },
  };
}
