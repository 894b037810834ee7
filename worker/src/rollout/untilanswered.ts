/** Retries requests that Redis refuses, so that a failover or full memory costs time, but no finished work. */
import { errorMessage, exponentialBackoff, refusedByRedis, sleep, sleepAtMost } from '@swefarm/shared';
import type { Logger } from 'pino';
import { type AbortKind, abortOf } from './active.ts';

const pauseMs = exponentialBackoff(100, 2_000);

export type AnswerWait = {
  log: Pick<Logger, 'warn' | 'info'>;
  signal?: AbortSignal;
  /** Kinds of abort that stop the retries; absent: none. */
  endedBy?: readonly AbortKind[];
};

const until =
  (...endedBy: readonly AbortKind[]) =>
  ({ log, signal }: Required<Pick<AnswerWait, 'log' | 'signal'>>): AnswerWait => ({ log, signal, endedBy });

/** Options for retries until another worker claims the rollout or this worker must exit. */
export const untilTakenOver = until('superseded', 'drain');
/** Options for retries until the attempt is ended from outside. */
export const untilAborted = until('superseded', 'drain', 'cancelled');

/**
 * Calls until Redis accepts; throws errors of other kinds at once. Logs the first refusal and the end of the wait. Throws AttemptAborted
 * when Redis refused `call` and the attempt was ended meanwhile; `call` runs at least once.
 */
export async function retryUntilAnswered<T>(
  what: string,
  call: () => Promise<T>,
  { log, signal, endedBy = [] }: AnswerWait,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      const answer = await call();
      if (tries > 1) log.info({ what, tries }, 'Redis accepted the request');
      return answer;
    } catch (error) {
      if (!refusedByRedis(error)) throw error;
      if (tries === 1) log.warn({ what, err: errorMessage(error) }, 'Redis refused the request: retrying');
    }
    const aborted = signal && abortOf(signal);
    if (aborted && endedBy.includes(aborted.kind)) throw aborted;
    // With an aborted signal, every pause would end at once.
    if (signal?.aborted === false) await sleepAtMost(pauseMs(tries), signal);
    else await sleep(pauseMs(tries));
  }
}
