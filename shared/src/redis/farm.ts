import type { CommonConfig } from '../config/load.ts';
import type { FarmRole, OpenOptions } from './connect.ts';
import type { Farm } from './open.ts';

export type { Farm, OpenOptions };

/** Loads the code of {@link openFarm} while a command waits for Redis. */
export async function prepareFarm(): Promise<void> {
  await import('./open.ts');
}

/**
 * Connects to Redis and checks the server. Later, commands of a worker wait until an outage ends. @throws UnusableError
 * `redis_unreachable`, `redis_full`, `redis_auth`, `redis_tls`, `redis_version`, `redis_kind`, `redis_unsafe` (only if `entrusts`);
 * UsageError for an invalid redis_url or its files
 */
export async function openFarm(
  config: CommonConfig,
  role: FarmRole,
  options: OpenOptions = {},
): Promise<Farm> {
  const { openConnectedFarm } = await import('./open.ts');
  return await openConnectedFarm(config, role, options);
}
