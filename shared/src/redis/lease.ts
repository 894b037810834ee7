import type { Store } from './part.ts';
import { loadScript } from './script.ts';

/** Leases for work that only one worker does at a time. */
export type Leases = ReturnType<typeof createLeases>;

export function createLeases({ redis, keys }: Store) {
  const acquire = loadScript(redis, 'lease_acquire');
  const release = loadScript(redis, 'lease_release');
  return {
    /** Acquires or renews a lease; false if another holder has it. */
    acquire: async (name: string, holder: string, ttlMs: number): Promise<boolean> =>
      (await acquire([keys.lease(name)], [holder, ttlMs])) === 1,
    /** Releases the lease of `holder`. */
    release: async (name: string, holder: string): Promise<void> =>
      void (await release([keys.lease(name)], [holder])),
  };
}
