/** Finds the node of a Redis Cluster that has the farm's slot. */
import { Redis } from 'ioredis';
import { errorMessage, UnusableError } from '../failures/errors.ts';
import type { ClientOptions, Endpoint } from './endpoint.ts';

const ASK_MS = 3_000;
/** Maximum number of nodes to ask from one seed. Each node knows the owner of the slot, so many redirections mean a failover. */
const MAX_HOPS = 5;
/** Matches the error of a redirection: slot, host and port. An empty host means the host of the asked node. */
const MOVED = /^MOVED \d+ (.*):(\d+)$/;

/** Returns the node that accepts writes of `key`. Throws UnusableError `redis_unreachable`, or the error of Redis about login or TLS. */
export async function ownerOf(
  key: string,
  seeds: readonly Endpoint[],
  optionsFor: (endpoint: Endpoint) => ClientOptions,
  address: string,
): Promise<Endpoint> {
  const reasons: string[] = [];
  let refusal: unknown = null;
  for (const seed of seeds) {
    try {
      return await hop(key, seed, optionsFor);
    } catch (error) {
      if (/NOAUTH|WRONGPASS|NOPERM|certificate/i.test(errorMessage(error))) refusal ??= error;
      reasons.push(`${seed.host}:${seed.port}: ${errorMessage(error)}`);
    }
  }
  if (refusal !== null) throw refusal;
  throw new UnusableError(
    'redis_unreachable',
    `no node of ${address} names the owner of this farm's keys (${reasons.join('; ')}); is the cluster up, and reachable from here?`,
  );
}

async function hop(
  key: string,
  from: Endpoint,
  optionsFor: (endpoint: Endpoint) => ClientOptions,
): Promise<Endpoint> {
  let at = from;
  for (let hops = 0; hops < MAX_HOPS; hops++) {
    const named = await ask(key, optionsFor(at));
    if (named === null) return at;
    at = { host: named.host || at.host, port: named.port };
  }
  throw new Error('its nodes redirect in a circle');
}

/** Returns the node to which this node redirects; null if this node has the slot of the key. */
async function ask(key: string, options: ClientOptions): Promise<Endpoint | null> {
  const redis = new Redis({
    ...options,
    lazyConnect: true,
    connectTimeout: ASK_MS,
    commandTimeout: ASK_MS,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
  });
  let reason: unknown;
  redis.on('error', (error) => {
    reason = error;
  });
  try {
    await redis.connect();
    await redis.get(key);
    return null;
  } catch (error) {
    const moved = MOVED.exec(errorMessage(error));
    if (moved) return { host: moved[1] ?? '', port: Number(moved[2]) };
    throw reason ?? error;
  } finally {
    redis.disconnect();
  }
}
