/** Connections: URL, TLS, ACL user; patience by role; and what must hold of the server before anything is trusted to it. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis, type RedisOptions } from 'ioredis';
import type { CommonConfig } from '../config/keys.ts';
import { errorMessage, UnusableError, UsageError } from '../errors.ts';
import type { Log } from '../log.ts';
import { addressPath, follow, readAddress, targetOf } from './address.ts';
import type { FarmRole, OpenOptions } from './farm.ts';
import { asUnusable } from './outage.ts';

/** How long a worker waits at start for a Redis that comes up beside it. */
const WORKER_PATIENCE_SECONDS = 60;
const CONNECT_TIMEOUT_MS = 10_000;
const MIN_VERSION = [6, 2] as const;
/** An answer that does not come for so long means a host that went away without a word: then the address is read again. */
const SILENCE_MS = 30_000;

/** Replies in the plain form; ioredis 6 has others. */
type ClientOptions = RedisOptions & { replyMapping?: 'legacy' };

export type Connection = { redis: Redis; address: string; warnings: string[] };

/** Options of the client, and the address as it may be shown. Throws UsageError for a URL that cannot be used. */
export function redisOptions(config: CommonConfig): { options: ClientOptions; address: string } {
  if (config.redis_url === null) {
    throw new UsageError(
      'no Redis is given: set redis_url (--redis-url, SWEFARM_REDIS_URL), such as redis://127.0.0.1:6379',
    );
  }
  const given = config.redis_url.reveal();
  const login = {
    ...(config.redis_username === null ? {} : { username: config.redis_username }),
    ...(config.redis_password === null ? {} : { password: config.redis_password.reveal() }),
  };
  if (given.startsWith('/')) return { options: { path: given, ...login }, address: given };
  let url: URL;
  try {
    url = new URL(given);
  } catch (error) {
    throw new UsageError(`redis_url ${config.redis_url} is no URL`, { cause: error });
  }
  const fromUrl = {
    ...(url.username ? { username: decodeURIComponent(url.username) } : {}),
    ...(url.password ? { password: decodeURIComponent(url.password) } : {}),
    ...login,
  };
  if (url.protocol === 'unix:') return { options: { path: url.pathname, ...fromUrl }, address: url.pathname };
  const db = Number(url.pathname.slice(1) || 0);
  if (!Number.isInteger(db))
    throw new UsageError(`redis_url ${config.redis_url}: the path is a database number`);
  const host = url.hostname.replace(/^\[|\]$/g, '') || '127.0.0.1';
  const port = Number(url.port || 6379);
  const tls = url.protocol === 'rediss:' ? { tls: tlsOptions(config, host) } : {};
  return {
    options: { host, port, db, ...fromUrl, ...tls },
    address: `${url.protocol}//${url.hostname}:${port}${db ? `/${db}` : ''}`,
  };
}

function tlsOptions(config: CommonConfig, servername: string) {
  const name = /^[\d.]+$|:/.test(servername) ? {} : { servername };
  if (config.redis_tls_ca === null) return name;
  try {
    return { ...name, ca: readFileSync(config.redis_tls_ca) };
  } catch (error) {
    throw new UsageError(`redis_tls_ca: ${errorMessage(error)}`, { cause: error });
  }
}

/**
 * Connects and checks the server. A worker waits for it a minute, a producer as long as it is told; that it waits is said once.
 * Later outages a worker outlasts however long they are, while a producer's single calls fail after about a second.
 * Throws UnusableError `redis_unreachable`, `redis_auth`, `redis_tls`, `redis_version`.
 */
export async function connectRedis(
  config: CommonConfig,
  role: FarmRole,
  log: Log,
  {
    signal,
    patienceSeconds = role === 'worker' ? WORKER_PATIENCE_SECONDS : 0,
    onWait = (text) => log.warn(text),
  }: Pick<OpenOptions, 'signal' | 'patienceSeconds' | 'onWait'> = {},
): Promise<Connection> {
  const file = config.redis_url === null ? null : addressPath(config.redis_url.reveal());
  let { options, address } = file === null ? redisOptions(config) : { options: {}, address: `file:${file}` };
  const until = Date.now() + patienceSeconds * 1000;
  for (let tries = 1; ; tries++) {
    signal?.throwIfAborted();
    try {
      if (file !== null) ({ options, address } = await followedOptions(file));
      const redis = await connectOnce(options, role, file);
      try {
        return { redis, address, warnings: await checkServer(redis, address, config) };
      } catch (error) {
        redis.disconnect();
        throw error;
      }
    } catch (error) {
      const unusable = asUnusable(error, address);
      if (unusable?.code !== 'redis_unreachable' || Date.now() >= until) throw unusable ?? error;
      if (tries === 1) onWait(`${unusable.message} Trying again for ${patienceSeconds} s.`);
      const pause = Math.min(250 * tries, 2_000, Math.max(1, until - Date.now()));
      await sleep(pause, undefined, signal ? { signal } : {});
    }
  }
}

async function followedOptions(file: string): Promise<{ options: ClientOptions; address: string }> {
  const there = await readAddress(file);
  const options = { ...targetOf(there), socketTimeout: SILENCE_MS };
  return { options, address: `redis://${there.host}:${there.port}, by ${file}` };
}

async function connectOnce(options: ClientOptions, role: FarmRole, file: string | null): Promise<Redis> {
  let established = false;
  const redis = new Redis({
    ...options,
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    connectionName: `swefarm-${role}`,
    maxRetriesPerRequest: role === 'worker' ? null : 3,
    // `this` are the options of the very client that asks: copies of this one, BullMQ's too, follow the file as well.
    retryStrategy(this: ClientOptions, times: number) {
      if (!established) return null;
      if (file !== null) void follow(file, this);
      return Math.min(100 * times, 2_000);
    },
  });
  let reason: unknown;
  // The listener also keeps ioredis from printing; callers see their own commands fail or wait.
  redis.on('error', (error) => {
    reason = error;
  });
  try {
    await redis.connect();
    await redis.ping();
    established = true;
    return redis;
  } catch (error) {
    redis.disconnect();
    throw reason ?? error;
  }
}

/** A second connection with the same options, whose errors are seen by its commands only. */
export function duplicateOf(redis: Redis, override: Partial<RedisOptions> = {}): Redis {
  const copy = redis.duplicate({ ...override, lazyConnect: false });
  copy.on('error', () => undefined);
  return copy;
}

async function checkServer(redis: Redis, address: string, config: CommonConfig): Promise<string[]> {
  const info = await infoOf(redis);
  if (info === null)
    return [`${address}: the ACL user may not read INFO, so version and persistence are unchecked`];
  const version = info.get('redis_version') ?? '0';
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < MIN_VERSION[0] || (major === MIN_VERSION[0] && minor < MIN_VERSION[1])) {
    throw new UnusableError(
      'redis_version',
      `Redis at ${address} is ${version}: ${MIN_VERSION.join('.')} or newer is needed`,
    );
  }
  return warningsOf(info, address, config.artifacts === 'redis:' ? config.artifact_budget_bytes : 0);
}

/** What is questionable in the server's own report, with the remedy. */
export function warningsOf(
  info: ReadonlyMap<string, string>,
  address: string,
  artifactBytes: number,
): string[] {
  const warnings: string[] = [];
  const policy = info.get('maxmemory_policy') ?? 'noeviction';
  const limit = Number(info.get('maxmemory') ?? 0);
  if (policy !== 'noeviction') {
    warnings.push(
      `${address}: maxmemory-policy is ${policy}: Redis may drop jobs and results; set it to noeviction`,
    );
  }
  if (limit > 0 && artifactBytes > limit * 0.8) {
    warnings.push(
      `${address}: maxmemory is ${limit} bytes, artifacts alone may take ${artifactBytes}; lower artifact_budget_bytes`,
    );
  }
  if (info.get('aof_enabled') === '0') {
    warnings.push(
      `${address}: no append-only file: a restart of Redis loses jobs and results; set appendonly yes`,
    );
  }
  return warnings;
}

async function infoOf(redis: Redis): Promise<Map<string, string> | null> {
  try {
    const lines = (await redis.info()).split('\r\n');
    return new Map(
      lines.map((line): [string, string] => [line.split(':', 1)[0] ?? '', line.slice(line.indexOf(':') + 1)]),
    );
  } catch (error) {
    if (/NOPERM/.test(errorMessage(error))) return null;
    throw error;
  }
}
