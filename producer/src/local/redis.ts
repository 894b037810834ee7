/** Starts a Redis for a run without --redis-url. Its data are in the run's state folder, so that a resumed run finds its queue. */
import { join } from 'node:path';
import { type LaunchedRedis, launchRedis } from '@swefarm/shared';

/**
 * Starts a Redis, or takes over the one that a killed process left. Disposing it ends it.
 *
 * @throws UnusableError when no server is available or it does not start; SwefarmError `redis_dir_in_use`
 */
export async function startLocalRedis(
  runDir: string,
  stateDir: string,
  signal: AbortSignal,
): Promise<LaunchedRedis> {
  return await launchRedis({ dir: join(runDir, 'redis'), binDir: join(stateDir, 'bin'), signal });
}
