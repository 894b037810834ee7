/** Quotas of a caller: rollouts without a result, and requests a minute. The gateway answers 429 to a request above a quota. */
import type { Farm } from '@swefarm/shared';
import type { FastifyInstance } from 'fastify';
import type { Caller } from './callers.ts';
import { Refusal } from './refusal.ts';

type QuotaReservation<T> = {
  value: T;
  /** The run of the new rollouts, and the number of rollouts in the run (0: an open run); null: no rollout was started. */
  booked: { run_id: string; rollouts: number } | null;
};

export type Quota = ReturnType<typeof createQuota>;

const RETRY_AFTER_SECONDS = 10;

export function createQuota(farm: Pick<Farm, 'quotas'>) {
  const queues = new Map<string, Promise<unknown>>();
  const requireLeft = async (name: string, quota: number, count: number): Promise<void> => {
    const before = await farm.quotas.inFlight(name);
    if (before + count <= quota) return;
    throw new Refusal(
      429,
      'over_quota',
      `caller ${name} has ${before} rollouts without a result and requests ${count} more: its quota is ${quota}; wait for results, or have the operator raise max_in_flight of its entry (gateway_max_in_flight)`,
      { retryAfterSeconds: RETRY_AFTER_SECONDS },
    );
  };
  return {
    /**
     * Runs `begin` for `count` new rollouts, one request of a caller at a time. The quota is exact within one gateway; several gateways
     * may exceed it by the rollouts that they start simultaneously.
     *
     * @throws Refusal 429 `over_quota`
     */
    async admit<T>(caller: Caller, count: number, begin: () => Promise<QuotaReservation<T>>): Promise<T> {
      const { name, max_in_flight: quota } = caller;
      if (quota === null) return (await begin()).value;
      const earlier = queues.get(name) ?? Promise.resolve();
      const admission = earlier
        .catch(() => undefined)
        .then(async () => {
          await requireLeft(name, quota, count);
          const { value, booked } = await begin();
          if (booked) await farm.quotas.enter(name, booked, booked.rollouts);
          return value;
        });
      queues.set(name, admission);
      return await admission;
    },
  };
}

const MINUTE_MS = 60_000;

/** Limits the number of requests of each token in each window of one minute. */
export function limitRequests(app: FastifyInstance): void {
  const windows = new Map<string, { until: number; count: number }>();
  app.addHook('onRequest', async ({ callers: [caller] }) => {
    if (!caller || caller.max_requests_per_minute === null) return;
    const now = performance.now();
    const known = windows.get(caller.name);
    const window = known && known.until > now ? known : { until: now + MINUTE_MS, count: 0 };
    windows.set(caller.name, window);
    window.count += 1;
    if (window.count <= caller.max_requests_per_minute) return;
    throw new Refusal(
      429,
      'too_many_requests',
      `caller ${caller.name}: ${caller.max_requests_per_minute} requests a minute are its quota; retry later, or have the operator raise max_requests_per_minute of its entry (gateway_max_requests_per_minute)`,
      { retryAfterSeconds: Math.ceil((window.until - now) / 1000) },
    );
  });
}
