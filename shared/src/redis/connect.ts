/** Connects to Redis. A client finds the server again after a failover. */
import { Redis, type RedisOptions } from 'ioredis';
import type { CommonConfig } from '../config/keys.ts';
import { errorMessage, UnusableError } from '../failures/errors.ts';
import type { Log } from '../processes/log.ts';
import { newId } from '../records/ids.ts';
import { linearBackoff, retry } from '../waiting/retry.ts';
import { type Clock, createClock } from './clock.ts';
import type { ClientOptions, RedisEndpoint } from './endpoint.ts';
import { type Inspection, inspectServer } from './inspect.ts';
import { keysFor } from './keys.ts';
import { asUnusable, leadsNoMore } from './outage.ts';
import { type Target, targetOf } from './target.ts';

export type FarmRole = 'worker' | 'producer';

export type OpenOptions = {
  log?: Log;
  signal?: AbortSignal;
  /** Seconds to wait for Redis at the start; default: 60 for a worker, 0 for a producer. */
  patienceSeconds?: number;
  /** Called once with the reason if the start waits for Redis; default: log the reason. */
  onWait?: (text: string) => void;
  /** Whether to refuse a Redis that may lose results (`redis_durability`), because the caller adds work; default: only for a worker. */
  entrusts?: boolean;
};

/** Seconds for which a starting worker waits for Redis. */
const WORKER_PATIENCE_SECONDS = 60;
const CONNECT_TIMEOUT_MS = 10_000;

/** Codes of temporary errors: Redis is starting, in a failover, or full. */
const PASSING: ReadonlySet<string> = new Set(['redis_unreachable', 'redis_full']);

export type Connection = {
  redis: Redis;
  /** Id of the farm. */
  id: string;
  clock: Clock;
  address: string;
  /** Inspects the server again; after a failover the server may be another one. */
  inspect: () => Promise<Inspection>;
} & Inspection;

/**
 * Connects and checks the server; waits for Redis up to `patienceSeconds`. In later outages, commands of a worker wait, and commands of a
 * producer fail after about a second. @throws UnusableError `redis_unreachable`, `redis_full`, `redis_auth`, `redis_tls`, `redis_version`,
 * `redis_kind`, `redis_unsafe` (only if `entrusts`); UsageError for an invalid redis_url or its files
 */
export async function connectRedis(
  config: CommonConfig,
  role: FarmRole,
  {
    log,
    signal,
    patienceSeconds = role === 'worker' ? WORKER_PATIENCE_SECONDS : 0,
    onWait = (text) => log?.warn(text),
    entrusts = role === 'worker',
  }: OpenOptions = {},
): Promise<Connection> {
  const target = targetOf(config);
  const connect = async (): Promise<Connection> => {
    let endpoint: RedisEndpoint = target;
    try {
      endpoint = (await target.locate?.()) ?? target;
      return await connectEndpoint(target, endpoint, config, role, entrusts);
    } catch (error) {
      throw asUnusable(error, endpoint.address) ?? error;
    }
  };
  return await retry(connect, {
    pauseMs: linearBackoff(250, 2_000),
    withinMs: patienceSeconds * 1000,
    signal,
    isPassing: (error) => error instanceof UnusableError && PASSING.has(error.code),
    onRetry: (error, tries) => {
      if (tries === 1) onWait(`${errorMessage(error)} Retrying for ${patienceSeconds} s.`);
    },
  });
}

async function connectEndpoint(
  target: Target,
  { options, address }: RedisEndpoint,
  config: CommonConfig,
  role: FarmRole,
  entrusts: boolean,
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
    const id = await farmId(redis, keysFor(config.redis_prefix).farmId);
    const clock = createClock(redis);
    await clock.ask();
    return { redis, id, clock, address, inspect, ...inspection };
  } catch (error) {
    redis.disconnect();
    throw error;
  }
}

/** Creates or reads the id of the farm; this also checks that the user may use the keys. */
async function farmId(redis: Redis, key: string): Promise<string> {
  const fresh = newId();
  await redis.set(key, fresh, 'NX');
  return (await redis.get(key)) ?? fresh;
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
    // `this`: the options of the client that reconnects. This client may be a copy, such as that of BullMQ.
    retryStrategy(this: ClientOptions, times: number) {
      if (established && target.locate) void follow(target.locate, this);
      return pauseBeforeTry(times);
    },
    // After a failover or a move of the slot, the command fails and the client reconnects to the new leader.
    reconnectOnError: (error) =>
      leadsNoMore(error) || (target.kind === 'cluster' && /^MOVED /.test(error.message)),
  });
  let reason: unknown;
  let ofSentinel: unknown;
  // ioredis prints errors unless there are listeners.
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
    // The error of one Sentinel is more specific than that of the client.
    throw ofSentinel ?? reason ?? error;
  }
}

/** Looks up the server and updates the options, which a client reads at each connect. */
async function follow(locate: () => Promise<RedisEndpoint>, options: ClientOptions): Promise<void> {
  const endpoint = await locate().catch(() => null);
  if (endpoint) Object.assign(options, endpoint.options);
}

export function duplicateOf(redis: Redis, override: Partial<RedisOptions> = {}): Redis {
  const copy = redis.duplicate({ ...override, lazyConnect: false });
  copy.on('error', () => undefined);
  return copy;
}
