/**
 * Admits rollouts to their policy. A rollout waits in the queue, before any attempt, until the limit of its pool admits it. If the limit falls,
 * rollouts are suspended before their next turn. Each second, the worker renews the leases of its rollouts and makes the jobs of admitted
 * rollouts due. One worker at a time polls the endpoints of a pool. During an outage of Redis, permissions do not change.
 */
import {
  ADMISSION_WAIT_MS,
  type EndpointLoad,
  errorMessage,
  type Farm,
  type Permission,
  type PolicyKey,
  untilAborted,
} from '@swefarm/shared';
import type { Logger } from 'pino';
import { createPause, type Pause } from '../agent/deadline.ts';
import { nextState } from './controller.ts';
import { readLoad } from './load.ts';
import type { PoolName } from './pool.ts';

const TICK_MS = 1_000;
const POLL_LEASE_MS = 10_000;
/** Time between two requests to an endpoint without metrics. */
const UNMEASURED_MS = 60_000;

/** Membership of a rollout in its pool. Disposing it removes the rollout from the pool. */
type Membership = Disposable & {
  /** Call this instead if another worker runs the rollout. The rollout stays in the pool, and this worker stops renewing its lease. */
  leaveToOther(): void;
};

/** A rollout that may play. Disposing it frees its slot. */
export type Permit = Membership & {
  /** Lasts while the rollout is suspended. */
  readonly pause: Pause;
  /** Counts an answer with status 429 or 503. */
  refused(): void;
};

/** A rollout that must wait. */
export type Waiting = Membership & {
  /** Delay of the rollout's job. The job is made due when the rollout is admitted. */
  readonly delayMs: number;
  /** Call this after the job is delayed: if the rollout was admitted in the meantime, makes the job due. Never throws. */
  delayed(): Promise<void>;
};

type Member = {
  rollout: string;
  order: number;
  permission: Permission;
  /** Resolves when it is known whether the rollout may play. */
  decided: PromiseWithResolvers<void>;
  pause: ReturnType<typeof createPause>;
};

type Pool = {
  name: PoolName;
  apiKey: () => Promise<PolicyKey | null>;
  members: Map<string, Member>;
  refused: number;
  counts: { playing: number; waiting: number };
  polledAt: number;
  polling: boolean;
};

type AdmissionDeps = {
  farm: Pick<Farm, 'admissions' | 'leases' | 'clock' | 'jobs'>;
  worker: string;
  /** Minimum time between two polls of a pool's endpoints, in milliseconds. */
  pollMs: number;
  log: Logger;
};

type Entrant = { rollout: string; order: number; apiKey: () => Promise<PolicyKey | null> };

export type Admission = ReturnType<typeof createAdmission>;

export function createAdmission(deps: AdmissionDeps, tickMs: number = TICK_MS) {
  const { farm, pollMs, log } = deps;
  const pools = new Map<string, Pool>();
  const exchange = createExchange(deps);
  const pollWhenDue = createPoll(deps, exchange);
  const tick = async (pool: Pool): Promise<void> => {
    await exchange(pool);
    await pollWhenDue(pool);
  };
  const timer = setInterval(() => tickAll(pools, tick), Math.min(tickMs, pollMs / 2));
  timer.unref();

  const leave = (pool: Pool, rollout: string): void => {
    pool.members.delete(rollout);
    farm.admissions.leave(pool.name.id, [rollout]).then(
      () => exchange(pool),
      (error: unknown) =>
        log.debug({ rollout, err: errorMessage(error) }, 'rollout has not left its pool: its lease expires'),
    );
  };

  return {
    /**
     * Returns a permit if the rollout may play now, else how it waits. Blocks only until the limit of the pool is known. Throws the signal's
     * reason when aborted. @param entrant `order`: priority of its job; the waiting rollout with the lowest one is admitted first
     */
    async enter(
      name: PoolName,
      { rollout, order, apiKey }: Entrant,
      signal: AbortSignal,
    ): Promise<Permit | Waiting> {
      const pool = pools.get(name.id) ?? newPool(name, apiKey);
      pools.set(name.id, pool);
      const decided = Promise.withResolvers<void>();
      const member: Member = { rollout, order, permission: 'wait', decided, pause: createPause() };
      pool.members.set(rollout, member);
      const membership = membershipOf(
        () => leave(pool, rollout),
        () => pool.members.delete(rollout),
      );
      try {
        await exchange(pool, [member]);
        void pollWhenDue(pool);
        await untilAborted(decided.promise, signal);
      } catch (error) {
        leave(pool, rollout);
        throw error;
      }
      if (!isWaiting(member))
        return { ...membership, pause: member.pause.pause, refused: () => void pool.refused++ };
      pool.members.delete(rollout);
      const delayed = async (): Promise<void> => {
        await exchange(pool, [member]);
        if (!isWaiting(member)) await call(farm, pool.name.id, [rollout], log);
      };
      return { ...membership, delayMs: ADMISSION_WAIT_MS, delayed };
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

function tickAll(pools: Map<string, Pool>, tick: (pool: Pool) => Promise<void>): void {
  for (const [id, pool] of pools) {
    // Any worker that knows of waiting rollouts may admit them.
    if (pool.members.size > 0 || pool.counts.waiting > 0) void tick(pool);
    else pools.delete(id);
  }
}

/** Returns a membership that runs only the first of the two functions that is called. */
function membershipOf(leave: () => void, drop: () => void): Membership {
  let ended = false;
  const once = (end: () => void) => () => {
    if (!ended) end();
    ended = true;
  };
  return { leaveToOther: once(drop), [Symbol.dispose]: once(leave) };
}

const newPool = (name: PoolName, apiKey: Pool['apiKey']): Pool => ({
  ...{ name, apiKey, members: new Map(), refused: 0, counts: { playing: 0, waiting: 0 } },
  ...{ polledAt: Number.NEGATIVE_INFINITY, polling: false },
});

type Exchange = (pool: Pool, members?: readonly Member[]) => Promise<void>;

/**
 * Returns a function that renews the leases of this worker's rollouts in a pool (default: all of them), and applies their permissions. It also
 * makes the jobs of newly admitted rollouts due. It never throws.
 */
function createExchange({ farm, log }: AdmissionDeps): Exchange {
  let away = false;
  return async (pool, members = [...pool.members.values()]) => {
    const { refused } = pool;
    pool.refused = 0;
    try {
      const sent = members.map((one) => ({ rollout: one.rollout, order: one.order, plays: !isWaiting(one) }));
      const reply = await farm.admissions.exchange(pool.name.id, sent, refused);
      if (reply.waiting > 0 && pool.counts.waiting === 0)
        log.info({ policy: pool.name.id, ...pool.counts }, 'rollouts wait in the queue for their policy');
      pool.counts = { playing: reply.playing, waiting: reply.waiting };
      for (const [at, member] of members.entries())
        permit(member, reply.permissions[at] ?? 'wait', reply.known);
      if (reply.called.length > 0) await call(farm, pool.name.id, reply.called, log);
      if (away) log.info('admission works again');
      away = false;
    } catch (error) {
      pool.refused += refused;
      if (!away)
        log.warn({ err: errorMessage(error) }, 'admission not renewed: permissions stay as they are');
      away = true;
    }
  };
}

/** Makes the jobs of admitted rollouts due. If this fails, the jobs become due when their delay ends. */
async function call(
  { jobs, admissions }: AdmissionDeps['farm'],
  pool: string,
  rollouts: readonly string[],
  log: Logger,
): Promise<void> {
  try {
    const gone = await jobs.promote(rollouts);
    if (gone.length > 0) await admissions.leave(pool, gone);
  } catch (error) {
    log.debug({ policy: pool, err: errorMessage(error) }, 'jobs of admitted rollouts are not due yet');
  }
}

/** Returns a function that polls the endpoints of a pool if a poll is due and no other worker does it. It never throws. */
function createPoll({ farm, worker, pollMs, log }: AdmissionDeps, exchange: Exchange): Exchange {
  const loads = createLoadReader();
  const poll = async (pool: Pool): Promise<void> => {
    const { id, endpoints } = pool.name;
    if (!(await farm.leases.acquire(`admission:${id}`, worker, POLL_LEASE_MS))) return;
    const { urls, serving } = await endpoints();
    const known = await farm.admissions.state(id);
    // During a weight update the endpoints are idle, which is no sign of room.
    if (!serving && known.state !== null) return;
    const seen = await loads.read(urls, await pool.apiKey());
    const next = nextState(known.state, {
      ...{ endpoints: Math.max(1, urls.length), loads: seen, refused: known.refused },
      ...{ ...pool.counts, now: farm.clock.now() },
    });
    await farm.admissions.setState(id, next);
    if (next.limit !== null && next.limit < (known.state?.limit ?? 0)) {
      const fields = { policy: id, limit: Math.floor(next.limit), ...pool.counts, why: next.reason };
      log.warn(fields, 'fewer rollouts may play');
    }
    await exchange(pool);
  };
  return async (pool) => {
    if (pool.name.fixed || pool.polling || performance.now() - pool.polledAt < pollMs) return;
    Object.assign(pool, { polling: true, polledAt: performance.now() });
    await poll(pool).catch((error: unknown) =>
      log.debug({ policy: pool.name.id, err: errorMessage(error) }, 'endpoints not polled'),
    );
    pool.polling = false;
  };
}

const isWaiting = ({ permission }: Member): boolean => permission === 'wait';

/** A rollout that plays is never sent back to wait: its sandbox has started. */
function permit(member: Member, permission: Permission, known: boolean): void {
  if (permission === 'wait' && !isWaiting(member)) return;
  member.permission = permission;
  if (permission === 'wait' && !known) return;
  member.decided.resolve();
  member.pause.set('limit', permission === 'suspended');
}

/** Reads the loads of endpoints. An endpoint that never had metrics is asked once a minute. */
function createLoadReader() {
  /** Monotonic time of the next request to each endpoint; 0 once it had metrics. */
  const dueAt = new Map<string, number>();
  return {
    async read(urls: readonly string[], apiKey: PolicyKey | null): Promise<EndpointLoad[]> {
      const due = urls.filter((url) => performance.now() >= (dueAt.get(url) ?? 0));
      const found = await Promise.all(
        due.map(async (url) => {
          const load = await readLoad(url, apiKey);
          if (load !== null) dueAt.set(url, 0);
          else if (dueAt.get(url) !== 0) dueAt.set(url, performance.now() + UNMEASURED_MS);
          return load ?? [];
        }),
      );
      return found.flat();
    },
  };
}
