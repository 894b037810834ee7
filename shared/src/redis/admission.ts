/**
 * Admission of rollouts by the load of their endpoints. A pool contains the rollouts of one policy. It has a limit, and a lease for each
 * rollout, so that the rollouts of a dead worker leave it. The worker with the lease of the pool sets the limit (worker/src/admission/).
 */
import { z } from 'zod';
import { readRecord } from '../records/parse.ts';
import type { Store } from './part.ts';
import { loadScript } from './script.ts';

/** Load of an endpoint as its metrics reported it. */
export const EndpointLoad = z.object({
  /** URL without user and password. */
  endpoint: z.string(),
  /** Share of the KV cache that running requests use. */
  kv_usage: z.number(),
  running: z.number(),
  waiting: z.number(),
  /** Preempted requests since the start of the server. */
  preemptions: z.number(),
});
export type EndpointLoad = z.infer<typeof EndpointLoad>;

export const AdmissionState = z.object({
  /** Maximum number of rollouts that play; null: no limit. */
  limit: z.number().nullable(),
  /** Below this limit the limit grows by a factor, above it by a constant; null: the limit never fell. */
  threshold: z.number().nullable(),
  /** Polls in which the limit stays as it is, because the last fall has not taken effect. */
  wait_polls: z.number().int(),
  /** Polls in a row with a long queue at the endpoints. */
  queue_polls: z.number().int(),
  /** Sum of refusals at the last poll. */
  refused: z.number().int(),
  endpoints: z.array(EndpointLoad),
  /** Reason of the last decrease of the limit; null: the limit never decreased. */
  reason: z.string().nullable(),
  /** Time of the last poll in milliseconds since the epoch. */
  at: z.number(),
});
export type AdmissionState = z.infer<typeof AdmissionState>;

export const Permission = z.enum(['wait', 'play', 'suspended']);
export type Permission = z.infer<typeof Permission>;

/** A rollout of this worker in a pool. `order`: priority of its job. The waiting rollout with the lowest priority number is admitted first. */
export type PoolMember = { rollout: string; plays: boolean; order: number };

/** `limit`: null for no limit. `playing` includes suspended rollouts, which are beyond the limit. */
export type PoolCounts = { limit: number | null; playing: number; waiting: number };

/** A pool with its state, which is null for a pool with a fixed limit, and while no worker has polled the endpoints. */
export type AdmissionPool = PoolCounts & { pool: string; state: AdmissionState | null };

/** Life time of a rollout's lease in milliseconds, as long as a lock of the queue. Workers renew it each second. */
const LEASE_MS = 20_000;
/**
 * Delay in milliseconds of a waiting rollout's job. Admission makes the job due earlier. The delay ends the wait only if a worker was lost
 * after it admitted the rollout.
 */
export const ADMISSION_WAIT_MS = 60_000;
const POOL_LIFE_S = 24 * 3600;
/** Time after the last exchange for which a pool is listed, in milliseconds. */
const LISTED_MS = 30_000;
/** Pools with a fixed limit have the name of the policy, this mark and the limit. */
const FIXED = '#';

/** Returns the name of the pool of a policy with a fixed limit. */
export const fixedPool = (policy: string, limit: number): string => `${policy}${FIXED}${limit}`;

const fixedLimit = (pool: string): number | null => Number(pool.split(FIXED)[1] ?? 0) || null;

/** Parses a stored state; an unreadable one counts as none. */
function stateOf(text: string | null): AdmissionState | null {
  const read = text === null ? null : readRecord(AdmissionState, text);
  return read && 'value' in read ? read.value : null;
}

export type Admissions = ReturnType<typeof createAdmissions>;

export function createAdmissions(store: Store) {
  const { redis } = store;
  const { admission: keys } = store.keys;
  const exchange = loadScript(redis, 'admission_exchange');
  return {
    /**
     * Renews the leases of the members for 20 s, and admits waiting rollouts up to the limit. An admission lasts 20 s unless the worker renews it.
     * Returns the permission of each member, in order. `called`: other admitted rollouts, whose jobs the caller must make due. `refused`: number
     * of 429 and 503 answers since the last exchange. If the pool has neither limit nor state, all members wait.
     */
    async exchange(
      pool: string,
      members: readonly PoolMember[],
      refused: number,
    ): Promise<PoolCounts & { known: boolean; permissions: Permission[]; called: string[] }> {
      const of = [keys.pool(pool), keys.playing(pool), keys.waiting(pool), keys.lapses(pool), keys.pools];
      const fixed = fixedLimit(pool) ?? '';
      const triples = members.flatMap(({ rollout, plays, order }) => [rollout, plays ? 1 : 0, order]);
      const waitMs = ADMISSION_WAIT_MS + LEASE_MS;
      const reply = await exchange(of, [pool, fixed, LEASE_MS, waitMs, POOL_LIFE_S, refused, ...triples]);
      const [limit, playing, waiting, ...rest] = reply as (string | number)[];
      return {
        limit: Number(limit) > 0 ? Number(limit) : null,
        known: limit !== '',
        playing: Number(playing),
        waiting: Number(waiting),
        permissions: rest.slice(0, members.length).map((one) => Permission.parse(one)),
        called: rest.slice(members.length).map(String),
      };
    },
    /** Removes rollouts from a pool. */
    async leave(pool: string, rollouts: readonly string[]): Promise<void> {
      const remove = redis.multi();
      for (const key of [keys.playing(pool), keys.waiting(pool), keys.lapses(pool)])
        remove.zrem(key, ...rollouts);
      await remove.exec();
    },
    /** Returns the state of a pool, and the sum of its refusals. */
    async state(pool: string): Promise<{ state: AdmissionState | null; refused: number }> {
      const [state, refused] = await redis.hmget(keys.pool(pool), 'state', 'refused');
      return { state: stateOf(state ?? null), refused: Number(refused ?? 0) };
    },
    setState: async (pool: string, state: AdmissionState): Promise<void> =>
      void (await redis.hset(keys.pool(pool), 'state', JSON.stringify(state))),
    /** Returns the pools that workers used in the last 30 s, by name. */
    list: (): Promise<AdmissionPool[]> => listPools(store),
  };
}

async function listPools({ redis, keys: { admission: keys }, clock }: Store): Promise<AdmissionPool[]> {
  const pools = await redis.zrangebyscore(keys.pools, (await clock.ask()) - LISTED_MS, '+inf');
  const read = redis.pipeline();
  for (const pool of pools)
    read.zcard(keys.playing(pool)).zcard(keys.waiting(pool)).hget(keys.pool(pool), 'state');
  const replies = ((await read.exec()) ?? []).map(([error, value]) => {
    if (error) throw error;
    return value;
  });
  return pools
    .map((pool, at) => {
      const [playing, waiting, state] = replies.slice(3 * at, 3 * at + 3);
      const known = stateOf(state as string | null);
      const limit = fixedLimit(pool) ?? (known?.limit == null ? null : Math.max(1, Math.floor(known.limit)));
      return { pool, limit, playing: Number(playing), waiting: Number(waiting), state: known };
    })
    .sort((a, b) => (a.pool < b.pool ? -1 : 1));
}
