/** The interface through which worker and producer use Redis. */
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
  /** Stable id of this Redis database and prefix. */
  readonly id: string;
  /** Address without password. */
  readonly address: string;
  /** Settings with which this Redis may lose results (eviction, no append-only file), with remedies. */
  readonly hazards: readonly string[];
  /** The hazards, and other problems of this Redis. */
  readonly warnings: readonly string[];
  /** The clock of Redis, by which all stored times are measured. Heartbeats of workers correct this clock. */
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
  /** Returns the BullMQ queue, which is opened at the first call and closed with the farm. */
  queue(): Queue<RolloutJob>;
  /** Returns the `connection` for a BullMQ Worker, which retries commands without limit and is closed with the farm. */
  bullConnection(): ConnectionOptions;
  /** Backend of BullMQ that uses {@link clock}. */
  readonly bullBackend: BackendFactory<RedisQueueBackend>;
  /** Returns the state of queue, workers, Redis and artifact store, for metrics. */
  vitals(): Promise<Vitals>;
  /** Returns the duration of one round trip to Redis in milliseconds. */
  ping(): Promise<number>;
}

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

/** Loads the code of {@link openFarm} while a command waits for Redis. */
export async function prepareFarm(): Promise<void> {
  await import('./open.ts');
}

/**
 * Connects to Redis and checks the server. Later, commands of a worker wait until an outage ends. @throws UnusableError
 * `redis_unreachable`, `redis_auth`, `redis_tls`, `redis_version`, `redis_kind`, `redis_unsafe` (only if `entrusts`); UsageError for an
 * invalid redis_url or its files
 */
export async function openFarm(
  config: CommonConfig,
  role: FarmRole,
  options: OpenOptions = {},
): Promise<Farm> {
  const { openConnectedFarm } = await import('./open.ts');
  return await openConnectedFarm(config, role, options);
}
