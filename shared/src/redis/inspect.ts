/** Checks version, role, eviction and persistence of a Redis with the command INFO. */
import type { Redis } from 'ioredis';
import type { CommonConfig } from '../config/keys.ts';
import { errorMessage, UnusableError } from '../failures/errors.ts';
import type { Target } from './target.ts';

export type Inspection = {
  /** Settings that may lose results, with remedies. */
  hazards: string[];
  warnings: string[];
};

type Info = ReadonlyMap<string, string>;

const MIN_VERSION = [6, 2] as const;

/** Inspects a server. Throws UnusableError `redis_version`, `redis_kind`, or `redis_unreachable` for a replica. */
export async function inspectServer(
  redis: Redis,
  { kind, address }: Pick<Target, 'kind' | 'address'>,
  config: CommonConfig,
): Promise<Inspection> {
  const info = await infoOf(redis);
  if (info === null) {
    const text = `${address}: the ACL user may not read INFO, so version and persistence are unchecked`;
    return { hazards: [], warnings: [text] };
  }
  refuseVersion(info, address);
  refuseKind(info, kind, address);
  const artifactBytes = config.artifacts === 'redis:' ? config.artifact_budget_bytes : 0;
  return { hazards: hazardsOf(info, address), warnings: warningsOf(info, address, artifactBytes) };
}

function refuseVersion(info: Info, address: string): void {
  const version = info.get('redis_version') ?? '0';
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > MIN_VERSION[0] || (major === MIN_VERSION[0] && minor >= MIN_VERSION[1])) return;
  throw new UnusableError(
    'redis_version',
    `Redis at ${address} is ${version}: ${MIN_VERSION.join('.')} or newer is needed`,
  );
}

function refuseKind(info: Info, kind: Target['kind'], address: string): void {
  const mode = info.get('redis_mode');
  if (mode === 'sentinel') {
    throw new UnusableError(
      'redis_kind',
      `${address} is a Sentinel, not a Redis: use redis+sentinel://host:port,host:port/NAME with the name of the master`,
    );
  }
  if (mode === 'cluster' && kind !== 'cluster') {
    throw new UnusableError(
      'redis_kind',
      `${address} is one node of a cluster: use redis+cluster://host:port,host:port`,
    );
  }
  if (info.get('role') === 'slave') {
    const master = `${info.get('master_host')}:${info.get('master_port')}`;
    throw new UnusableError(
      'redis_unreachable',
      `${address} is a replica of ${master} and accepts no writes: use its master, or redis+sentinel:// or redis+cluster:// to follow it`,
    );
  }
}

/** Returns settings that may lose data. All policies but noeviction are hazards: keys of a farm expire, so `volatile-…` evicts them too. */
function hazardsOf(info: Info, address: string): string[] {
  const hazards: string[] = [];
  const policy = info.get('maxmemory_policy') ?? 'noeviction';
  if (policy !== 'noeviction') {
    hazards.push(
      `${address}: maxmemory-policy is ${policy}: Redis may drop jobs and results; set it to noeviction`,
    );
  }
  if (info.get('aof_enabled') === '0') {
    hazards.push(
      `${address}: no append-only file: a restart of Redis loses jobs and results; set appendonly yes`,
    );
  }
  return hazards;
}

function warningsOf(info: Info, address: string, artifactBytes: number): string[] {
  const limit = Number(info.get('maxmemory') ?? 0);
  if (limit === 0 || artifactBytes <= limit * 0.8) return [];
  return [
    `${address}: maxmemory is ${limit} bytes, but artifacts alone may take ${artifactBytes}; lower artifact_budget_bytes`,
  ];
}

async function infoOf(redis: Redis): Promise<Info | null> {
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
