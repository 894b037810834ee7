/** At start a worker waits for its container engine and for free disk, as it waits for Redis. */
import { errorMessage, linearBackoff, retry } from '@swefarm/shared';
import type { Logger } from 'pino';

/** Error code: no runtime now, but perhaps soon. */
export const RUNTIME_AWAY = 'runtime_away';

/** Codes of errors, of the farm and of the system, that may pass. */
const PASSING: ReadonlySet<unknown> = new Set([
  RUNTIME_AWAY,
  'engine_unreachable',
  'node_disk',
  'ENOSPC',
  'EDQUOT',
]);

/** Retries errors that may pass for `patienceSeconds`; logs the wait once. Throws the last error. */
export async function waitForRuntime<T>(
  call: () => Promise<T>,
  { patienceSeconds, log, signal }: { patienceSeconds: number; log: Logger; signal: AbortSignal },
): Promise<T> {
  let waited = false;
  const answer = await retry(call, {
    pauseMs: linearBackoff(250, 2_000),
    withinMs: patienceSeconds * 1000,
    signal,
    isPassing: mayPass,
    onRetry(error) {
      if (waited) return;
      waited = true;
      log.warn(
        { patience_seconds: patienceSeconds, err: errorMessage(error) },
        'runtime not usable yet: waiting',
      );
    },
  });
  if (waited) log.info('runtime is usable');
  return answer;
}

function mayPass(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ('code' in error && PASSING.has(error.code)) || mayPass(error.cause);
}
