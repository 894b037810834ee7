/** Starts a Redis for a run without --redis-url. Its data are in the run's state folder, so that a resumed run finds its queue. */
import { join } from 'node:path';
import { type LaunchedRedis, launchRedis } from '@swefarm/shared';

/**
 * Starts it, or takes over the one that a killed process left. It ends with `await using`.
 *
 * @throws UnusableError when no server can be had or it does not come up; SwefarmError `redis_dir_in_use`
 */
export async function startLocalRedis(
  runDir: string,
  stateDir: string,
  signal: AbortSignal,
): Promise<LaunchedRedis> {
  return await launchRedis({ dir: join(runDir, 'redis'), binDir: join(stateDir, 'bin'), signal });
}
