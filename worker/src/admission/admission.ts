/**
 * Admits rollouts to their policy: a rollout waits before its sandbox starts until the limit of its pool admits it, and is suspended before
 * its next turn while the limit is lower. Each second the worker renews the leases of its rollouts; one worker at a time polls the
 * endpoints of a pool. During an outage of Redis, permissions stay as they are.
 */
import {
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

/** A rollout that may play. Disposing it frees its slot. */
export type Permit = Disposable & {
  /** Lasts while the rollout is suspended. */
  readonly pause: Pause;
  /** Counts an answer with status 429 or 503. */
  refused(): void;
};

type Member = {
  rollout: string;
  rank: number;
  permission: Permission;
  admitted: PromiseWithResolvers<void>;
  pause: ReturnType<typeof createPause>;
};

type Pool = {
  name: PoolName;
  apiKey: PolicyKey | null;
  members: Map<string, Member>;
  refused: number;
  counts: { playing: number; waiting: number };
  polledAt: number;
  polling: boolean;
};

type AdmissionDeps = {
  farm: Pick<Farm, 'admissions' | 'leases' | 'clock'>;
  worker: string;
  /** Minimum time between two polls of a pool's endpoints, in milliseconds. */
  pollMs: number;
  log: Logger;
};

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
  const timer = setInterval(
    () => {
      for (const pool of pools.values()) void tick(pool);
    },
    Math.min(tickMs, pollMs / 2),
  );
  timer.unref();

  const leave = (pool: Pool, { rollout }: Member): void => {
    pool.members.delete(rollout);
    if (pool.members.size === 0) pools.delete(pool.name.id);
    farm.admissions.leave(pool.name.id, [rollout]).then(
      () => (pool.members.size > 0 ? exchange(pool) : undefined),
      (error: unknown) =>
        log.debug({ rollout, err: errorMessage(error) }, 'rollout has not left its pool: its lease expires'),
    );
  };

  return {
    /**
     * Waits until the rollout may play; throws the signal's reason when aborted. `onWait` is called if it must wait.
     * @param rank class of the run, 0 first; of one class, the rollout that came first is admitted first
     */
    async enter(
      name: PoolName,
      { rollout, rank, apiKey }: { rollout: string; rank: number; apiKey: PolicyKey | null },
      signal: AbortSignal,
      onWait: () => void,
    ): Promise<Permit> {
      const pool = pools.get(name.id) ?? newPool(name, apiKey);
      pools.set(name.id, pool);
      const admitted = Promise.withResolvers<void>();
      const member: Member = { rollout, rank, permission: 'wait', admitted, pause: createPause() };
      pool.members.set(rollout, member);
      try {
        await tick(pool);
        if (isWaiting(member)) onWait();
        await untilAborted(admitted.promise, signal);
      } catch (error) {
        leave(pool, member);
        throw error;
      }
      return {
        pause: member.pause.pause,
        refused: () => void pool.refused++,
        [Symbol.dispose]: () => leave(pool, member),
      };
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

const newPool = (name: PoolName, apiKey: PolicyKey | null): Pool => ({
  ...{ name, apiKey, members: new Map(), refused: 0, counts: { playing: 0, waiting: 0 } },
  ...{ polledAt: Number.NEGATIVE_INFINITY, polling: false },
});

type Exchange = (pool: Pool) => Promise<void>;

/** Returns a function that renews the leases of this worker's rollouts in a pool, and applies their permissions. It never throws. */
function createExchange({ farm, log }: AdmissionDeps): Exchange {
  let away = false;
  return async (pool) => {
    const members = [...pool.members.values()];
    const { refused } = pool;
    pool.refused = 0;
    try {
      const sent = members.map((one) => ({ rollout: one.rollout, rank: one.rank, plays: !isWaiting(one) }));
      const reply = await farm.admissions.exchange(pool.name.id, sent, refused);
      pool.counts = { playing: reply.playing, waiting: reply.waiting };
      for (const [at, member] of members.entries()) permit(member, reply.permissions[at] ?? 'wait');
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
    const seen = await loads.read(urls, pool.apiKey);
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
function permit(member: Member, permission: Permission): void {
  if (permission === 'wait' && !isWaiting(member)) return;
  member.permission = permission;
  if (permission !== 'wait') member.admitted.resolve();
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
