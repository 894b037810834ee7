/** Connects to Redis with the patience of each role; a client finds its server again after it moved. */
import { Redis, type RedisOptions } from 'ioredis';
import type { CommonConfig } from '../config/keys.ts';
import { errorMessage, UnusableError } from '../failures/errors.ts';
import type { Log } from '../processes/log.ts';
import { linearBackoff, retry } from '../waiting/retry.ts';
import type { ClientOptions, RedisEndpoint } from './endpoint.ts';
import type { FarmRole, OpenOptions } from './farm.ts';
import { type Inspection, inspectServer } from './inspect.ts';
import { asUnusable, leadsNoMore } from './outage.ts';
import { type Target, targetOf } from './target.ts';

/** How long a worker waits at start for a Redis that comes up beside it. */
const WORKER_PATIENCE_SECONDS = 60;
const CONNECT_TIMEOUT_MS = 10_000;

/** Errors that pass while a Redis starts, fails over, or has no room. */
const PASSING: ReadonlySet<string> = new Set(['redis_unreachable', 'redis_full']);

/** A first command to the server; while the server refuses it, the start waits as it does for a connection. */
type Begin = (redis: Redis) => Promise<void>;

export type Connection = {
  redis: Redis;
  address: string;
  /** As it is now: a failover may have brought another server. */
  inspect: () => Promise<Inspection>;
} & Inspection;

/**
 * Connects and checks the server. A worker waits for it a minute, a producer as long as it is told; that it waits is said once.
 * Later outages a worker outlasts however long they are, while a producer's single calls fail after about a second.
 * Throws UnusableError `redis_unreachable`, `redis_auth`, `redis_tls`, `redis_version`, `redis_kind`, and `redis_unsafe` where work is entrusted.
 */
export async function connectRedis(
  config: CommonConfig,
  role: FarmRole,
  log: Log,
  {
    signal,
    patienceSeconds = role === 'worker' ? WORKER_PATIENCE_SECONDS : 0,
    onWait = (text) => log.warn(text),
    entrusts = role === 'worker',
    begin,
  }: Pick<OpenOptions, 'signal' | 'patienceSeconds' | 'onWait' | 'entrusts'> & { begin?: Begin } = {},
): Promise<Connection> {
  const target = targetOf(config);
  const connect = async (): Promise<Connection> => {
    let place: RedisEndpoint = target;
    try {
      place = (await target.locate?.()) ?? target;
      return await connectPlace(target, place, config, { role, entrusts, begin });
    } catch (error) {
      throw asUnusable(error, place.address) ?? error;
    }
  };
  return await retry(connect, {
    pauseMs: linearBackoff(250, 2_000),
    withinMs: patienceSeconds * 1000,
    signal,
    isPassing: (error) => error instanceof UnusableError && PASSING.has(error.code),
    onRetry: (error, tries) => {
      if (tries === 1) onWait(`${errorMessage(error)} Trying again for ${patienceSeconds} s.`);
    },
  });
}

async function connectPlace(
  target: Target,
  { options, address }: RedisEndpoint,
  config: CommonConfig,
  { role, entrusts, begin }: { role: FarmRole; entrusts: boolean; begin: Begin | undefined },
): Promise<Connection> {
  const redis = await connectOnce(options, role, target);
  const inspect = (): Promise<Inspection> => inspectServer(redis, { kind: target.kind, address }, config);
  try {
    const inspection = await inspect();
    if (entrusts && config.redis_durability === 'required' && inspection.hazards.length > 0) {
      throw new UnusableError(
        'redis_unsafe',
        `${inspection.hazards.join('. ')} (or accept it: redis_durability best_effort)`,
      );
    }
    await begin?.(redis);
    return { redis, address, inspect, ...inspection };
  } catch (error) {
    redis.disconnect();
    throw error;
  }
}

async function connectOnce(options: ClientOptions, role: FarmRole, target: Target): Promise<Redis> {
  let established = false;
  const pauseBeforeTry = (times: number): number | null =>
    established ? Math.min(100 * times, 2_000) : null;
  const redis = new Redis({
    ...options,
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    connectionName: `swefarm-${role}`,
    maxRetriesPerRequest: role === 'worker' ? null : 3,
    sentinelRetryStrategy: pauseBeforeTry,
    // `this` are the options of the very client that asks: copies of this one, BullMQ's too, follow as well.
    retryStrategy(this: ClientOptions, times: number) {
      if (established && target.locate) void follow(target.locate, this);
      return pauseBeforeTry(times);
    },
    // The slot has moved to another node, or the node leads no more: the caller's command fails, as in an outage, and the client
    // looks for whoever does.
    reconnectOnError: (error) =>
      leadsNoMore(error) || (target.kind === 'cluster' && /^MOVED /.test(error.message)),
  });
  let reason: unknown;
  let ofSentinel: unknown;
  // The listeners also keep ioredis from printing; callers see their own commands fail or wait.
  redis.on('error', (error) => {
    reason = error;
  });
  redis.on('sentinelError', (error) => {
    ofSentinel = error;
  });
  try {
    await redis.connect();
    await redis.ping();
    established = true;
    return redis;
  } catch (error) {
    redis.disconnect();
    // The error of one Sentinel says more than the one that all of them failed.
    throw ofSentinel ?? reason ?? error;
  }
}

/** Updates the options that a client reads at each connect to where the server is now; leaves them when that is unknown. */
async function follow(locate: () => Promise<RedisEndpoint>, options: ClientOptions): Promise<void> {
  const place = await locate().catch(() => null);
  if (place) Object.assign(options, place.options);
}

/** A second connection with the same options, whose errors are seen by its commands only. */
export function duplicateOf(redis: Redis, override: Partial<RedisOptions> = {}): Redis {
  const copy = redis.duplicate({ ...override, lazyConnect: false });
  copy.on('error', () => undefined);
  return copy;
}
