/** At its start a worker waits for its container engine as it waits for Redis: nodes start everything at once, and engines restart. */
import { setTimeout as sleep } from 'node:timers/promises';
import { errorMessage, SwefarmError } from '@swefarm/shared';
import type { Logger } from 'pino';

/** Code of errors, of whatever type, that mean an engine which does not answer now. */
export const ENGINE_AWAY = 'engine_unreachable';

const FIRST_MS = 250;
const LONGEST_MS = 2_000;

/** Calls again while the engine is away, for so long; that it waits is said once. Throws what the last call threw. */
export async function outwaitEngine<T>(
  call: () => Promise<T>,
  { patienceSeconds, log, signal }: { patienceSeconds: number; log: Logger; signal: AbortSignal },
): Promise<T> {
  const until = performance.now() + patienceSeconds * 1000;
  for (let tries = 1; ; tries++) {
    try {
      const answer = await call();
      if (tries > 1) log.info('the container engine answers');
      return answer;
    } catch (error) {
      const isAway = error instanceof SwefarmError && error.code === ENGINE_AWAY;
      if (!isAway || performance.now() >= until) throw error;
      if (tries === 1)
        log.warn(
          { patience_seconds: patienceSeconds, err: errorMessage(error) },
          'waiting for the container engine',
        );
    }
    await sleep(Math.min(FIRST_MS * tries, LONGEST_MS, Math.max(1, until - performance.now())), undefined, {
      signal,
    });
  }
}
