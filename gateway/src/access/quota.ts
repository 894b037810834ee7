/** How much of the farm one caller may use at once: rollouts without a result, and requests in a minute. More is answered 429. */
import type { Farm } from '@swefarm/shared';
import type { FastifyInstance } from 'fastify';
import type { Caller } from './callers.ts';
import { Refusal } from './refusal.ts';

export type QuotaReservation<T> = {
  value: T;
  /** The run of the new rollouts, of which it has `rollouts` in all (0: an open run); null: nothing was begun. */
  booked: { run_id: string; rollouts: number } | null;
};

export type Quota = {
  /**
   * Begins `count` more rollouts for a caller; requests of one caller are admitted one after the other. Exact within one gateway;
   * several gateways together may exceed a quota by the rollouts that they begin in the same moment.
   *
   * @throws Refusal 429 `over_quota`
   */
  admit<T>(caller: Caller, count: number, begin: () => Promise<QuotaReservation<T>>): Promise<T>;
};

/** Each committed result makes room. */
const ROOM_SECONDS = 10;

export function createQuota(farm: Pick<Farm, 'quotas'>): Quota {
  const queues = new Map<string, Promise<unknown>>();
  const admitNow = async <T>(
    caller: Caller,
    count: number,
    begin: () => Promise<QuotaReservation<T>>,
  ): Promise<T> => {
    const quota = caller.maxInFlight ?? Number.POSITIVE_INFINITY;
    const before = await farm.quotas.inFlight(caller.name);
    if (before + count > quota) {
      throw new Refusal(
        429,
        'over_quota',
        `caller ${caller.name} has ${before} rollouts without a result, and asks for ${count} more: its quota is ${quota}; wait for some, or have the operator raise max_in_flight of its entry (gateway_max_in_flight)`,
        { retryAfterSeconds: ROOM_SECONDS },
      );
    }
    const { value, booked } = await begin();
    if (booked) await farm.quotas.enter(caller.name, booked, booked.rollouts);
    return value;
  };
  return {
    async admit(caller, count, begin) {
      if (caller.maxInFlight === null) return (await begin()).value;
      const earlier = queues.get(caller.name) ?? Promise.resolve();
      const admission = earlier.catch(() => undefined).then(() => admitNow(caller, count, begin));
      queues.set(caller.name, admission);
      return await admission;
    },
  };
}

const MINUTE_MS = 60_000;

/** Counts the requests of each token within a minute from its first; requests without a token are not counted. */
export function limitRequests(app: FastifyInstance): void {
  const windows = new Map<string, { until: number; count: number }>();
  app.addHook('onRequest', async ({ callers: [caller] }) => {
    if (!caller || caller.maxRequestsPerMinute === null) return;
    const now = performance.now();
    const known = windows.get(caller.name);
    const window = known && known.until > now ? known : { until: now + MINUTE_MS, count: 0 };
    windows.set(caller.name, window);
    window.count += 1;
    if (window.count <= caller.maxRequestsPerMinute) return;
    throw new Refusal(
      429,
      'too_many_requests',
      `caller ${caller.name}: ${caller.maxRequestsPerMinute} requests in a minute are its quota; try again later, or have the operator raise max_requests_per_minute of its entry (gateway_max_requests_per_minute)`,
      { retryAfterSeconds: Math.ceil((window.until - now) / 1000) },
    );
  });
}
