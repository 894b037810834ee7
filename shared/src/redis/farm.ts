/** All that the farm keeps in Redis behind one object: the only door through which worker and producer reach it. */
import type { BackendFactory, ConnectionOptions, Queue, RedisQueueBackend } from 'bullmq';
import type { Artifacts } from '../artifacts/artifacts.ts';
import type { CommonConfig } from '../config/load.ts';
import type { Vitals } from '../metrics/vitals.ts';
import type { Log } from '../processes/log.ts';
import type { RolloutJob } from '../records/job.ts';
import type { Calls } from './calls.ts';
import type { Cancel } from './cancel.ts';
import type { Clock } from './clock.ts';
import type { Commit } from './commit.ts';
import type { Controls } from './controls.ts';
import type { Groups } from './groups.ts';
import type { Jobs } from './jobs.ts';
import type { Journal } from './journal.ts';
import type { Leases } from './lease.ts';
import type { Live } from './live.ts';
import type { Locks } from './locks.ts';
import type { Nodes } from './nodes.ts';
import type { Placement } from './placement.ts';
import type { Policies } from './policies.ts';
import type { Probes } from './probes.ts';
import type { Quotas } from './quotas.ts';
import type { Registry } from './registry.ts';
import type { Results } from './results.ts';
import type { Runs } from './runs.ts';
import type { Secrets } from './secrets.ts';
import type { Sessions } from './sessions.ts';

export type FarmRole = 'worker' | 'producer';

export interface Farm extends AsyncDisposable {
  /** Stable id of this Redis and prefix, for container labels. */
  readonly id: string;
  /** Redis address without password, for messages. */
  readonly address: string;
  /** What may make this Redis lose results (eviction, no append-only file): one line each, with a remedy. */
  readonly hazards: readonly string[];
  /** The hazards, and whatever else is questionable about this Redis. */
  readonly warnings: readonly string[];
  /** All times that are stored in Redis, or compared with times from there, are of this clock. A worker's beats correct it. */
  readonly clock: Clock;
  readonly runs: Runs;
  readonly journal: Journal;
  readonly commit: Commit;
  readonly results: Results;
  readonly groups: Groups;
  readonly jobs: Jobs;
  readonly nodes: Nodes;
  readonly cancel: Cancel;
  readonly registry: Registry;
  readonly secrets: Secrets;
  readonly leases: Leases;
  readonly controls: Controls;
  readonly probes: Probes;
  readonly policies: Policies;
  readonly placement: Placement;
  readonly calls: Calls;
  readonly quotas: Quotas;
  readonly live: Live;
  readonly locks: Locks;
  readonly sessions: Sessions;
  readonly artifacts: Artifacts;
  /** The BullMQ queue to submit to; opened at first use, closed with the farm. */
  queue(): Queue<RolloutJob>;
  /** `connection` for a BullMQ Worker: retries for ever; closed with the farm. */
  bullConnection(): ConnectionOptions;
  /** The backend for it, which goes by {@link clock}. */
  readonly bullBackend: BackendFactory<RedisQueueBackend>;
  /** How queue, workers, Redis and artifact store stand now, for metrics. */
  vitals(): Promise<Vitals>;
  /** Milliseconds of one round trip. */
  ping(): Promise<number>;
}

export type OpenOptions = {
  log?: Log;
  signal?: AbortSignal;
  /** How long the start waits for a Redis that does not answer; absent: a minute for a worker, not at all for a producer. */
  patienceSeconds?: number;
  /** Called once, with the reason, when the start waits for Redis; absent: the reason is logged. */
  onWait?: (text: string) => void;
  /** New work is to be given to this Redis: one that may lose it is refused (`redis_durability`). Absent: for a worker. */
  entrusts?: boolean;
};

/** Loads what {@link openFarm} needs, for a command that waits for its Redis meanwhile. */
export async function prepareFarm(): Promise<void> {
  await import('./open.ts');
}

/**
 * Connects and checks. A producer fails at the first refusal unless it is given patience; a worker waits a minute for Redis at
 * start, and outlasts every outage after that.
 * Throws UnusableError `redis_unreachable`, `redis_auth`, `redis_tls`, `redis_version`, `redis_kind`, and `redis_unsafe` where
 * work is entrusted; UsageError for a redis_url, or a file of it, that cannot be used.
 */
export async function openFarm(
  config: CommonConfig,
  role: FarmRole,
  options: OpenOptions = {},
): Promise<Farm> {
  const { openConnectedFarm } = await import('./open.ts');
  return await openConnectedFarm(config, role, options);
}
