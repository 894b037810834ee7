/** Leases for work that only one worker does at a time. */
import type { Redis } from 'ioredis';
import type { Keys } from './keys.ts';
import { loadScript } from './script.ts';

export type Leases = {
  /** Acquires or renews a lease; false if another holder has it. */
  acquire(name: string, holder: string, ttlMs: number): Promise<boolean>;
  /** Releases the lease of `holder`. */
  release(name: string, holder: string): Promise<void>;
};

export function createLeases(redis: Redis, keys: Keys): Leases {
  const scripts = {
    acquire: loadScript(redis, 'lease_acquire'),
    release: loadScript(redis, 'lease_release'),
  };
  return {
    acquire: async (name, holder, ttlMs) =>
      (await scripts.acquire([keys.lease(name)], [holder, ttlMs])) === 1,
    release: async (name, holder) => void (await scripts.release([keys.lease(name)], [holder])),
  };
}
