/** Waits at the start of a worker for the container engine and for free disk, as the worker also waits for Redis. */
import { errorMessage, linearBackoff, retry } from '@swefarm/shared';
import type { Logger } from 'pino';

/** Error code: no runtime is usable now, but one may be usable soon. */
export const RUNTIME_AWAY = 'runtime_away';

/** Codes of errors that may pass, of the farm and of the operating system. */
const PASSING: ReadonlySet<unknown> = new Set([
  RUNTIME_AWAY,
  'engine_unreachable',
  'node_disk',
  'ENOSPC',
  'EDQUOT',
]);

/** Retries errors that may pass, for at most `patienceSeconds`, and logs the wait once. Throws the last error. */
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
