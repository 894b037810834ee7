/** At its start a worker waits for its container engine, or for room on its disk, as it waits for Redis: nodes start everything at once, engines restart, disks are cleared. */
import { setTimeout as sleep } from 'node:timers/promises';
import { errorMessage } from '@swefarm/shared';
import type { Logger } from 'pino';

/** Code of the error that means: no runtime now, and perhaps soon. */
export const RUNTIME_AWAY = 'runtime_away';

/** Of errors of ours and of the system. */
const PASSING: ReadonlySet<unknown> = new Set([
  RUNTIME_AWAY,
  'engine_unreachable',
  'node_disk',
  'ENOSPC',
  'EDQUOT',
]);

const FIRST_MS = 250;
const LONGEST_MS = 2_000;

/** Calls again for so long while sandboxes cannot be started for a reason that may pass; that it waits is said once. Throws what the last call threw. */
export async function waitForRuntime<T>(
  call: () => Promise<T>,
  { patienceSeconds, log, signal }: { patienceSeconds: number; log: Logger; signal: AbortSignal },
): Promise<T> {
  const until = performance.now() + patienceSeconds * 1000;
  for (let tries = 1; ; tries++) {
    try {
      const answer = await call();
      if (tries > 1) log.info('sandboxes can be started now');
      return answer;
    } catch (error) {
      if (!mayPass(error) || performance.now() >= until) throw error;
      if (tries === 1)
        log.warn(
          { patience_seconds: patienceSeconds, err: errorMessage(error) },
          'sandboxes cannot be started yet; waiting',
        );
    }
    const pause = Math.min(FIRST_MS * tries, LONGEST_MS, Math.max(1, until - performance.now()));
    await sleep(pause, undefined, { signal });
  }
}

function mayPass(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ('code' in error && PASSING.has(error.code)) || mayPass(error.cause);
}
