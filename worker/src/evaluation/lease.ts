/** A lease of one attempt on work that only one worker of the farm does, renewed until it is disposed of. */
import type { Leases } from '@swefarm/shared';

export type LeaseDeps = {
  leases: Leases;
  holder: string;
  /** Calls Redis, and repeats the call while Redis refuses it. */
  ask: <T>(call: () => Promise<T>) => Promise<T>;
  signal: AbortSignal;
  /** Milliseconds without a renewal after which another worker takes over; absent: one minute. */
  leaseMs?: number;
};

const LEASE_MS = 60_000;
const RENEWALS_PER_LEASE = 3;

/** Takes the lease; null: another holder has it. Renewals end with the attempt. */
export async function takeLease(
  name: string,
  { leases, holder, ask, signal, leaseMs = LEASE_MS }: LeaseDeps,
): Promise<AsyncDisposable | null> {
  const renew = () => leases.acquire(name, holder, leaseMs);
  if (!(await ask(renew))) return null;
  const renewal = setInterval(() => {
    if (signal.aborted) clearInterval(renewal);
    else void renew().catch(() => undefined);
  }, leaseMs / RENEWALS_PER_LEASE);
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(renewal);
      // If the release fails, the lease expires.
      await leases.release(name, holder).catch(() => undefined);
    },
  };
}
