/** Builds the farm from its parts. This file is loaded when a farm is opened, so that threads do not load the Redis client. */
import { type BackendFactory, type ConnectionOptions, Queue, type RedisQueueBackend } from 'bullmq';
import type { Redis } from 'ioredis';
import { artifactLimits, createArtifacts } from '../artifacts/artifacts.ts';
import type { CommonConfig } from '../config/keys.ts';
import { errorMessage } from '../failures/errors.ts';
import { type Log, silentLog } from '../processes/log.ts';
import type { RolloutJob } from '../records/job.ts';
import { createAdmissions } from './admission.ts';
import { redisArtifacts } from './artifacts.ts';
import { byClock } from './bullclock.ts';
import { Calls } from './calls.ts';
import { Cancel } from './cancel.ts';
import type { Clock } from './clock.ts';
import { createCommit } from './commit.ts';
import { type Connection, connectRedis, duplicateOf, type FarmRole, type OpenOptions } from './connect.ts';
import { createControls } from './controls.ts';
import { createGroupEnds } from './groupends.ts';
import { Groups } from './groups.ts';
import { createHistory } from './history.ts';
import { Jobs } from './jobs.ts';
import { Journal } from './journal.ts';
import { type Keys, keysFor } from './keys.ts';
import { createLeases } from './lease.ts';
import { createLive } from './live.ts';
import { createLocks } from './locks.ts';
import { createNodes } from './nodes.ts';
import { throwingUnusable } from './outage.ts';
import type { Store } from './part.ts';
import { createPasses } from './passes.ts';
import { createPlacement } from './placement.ts';
import { Policies } from './policies.ts';
import { createProbes } from './probes.ts';
import { jobSettings, QUEUES } from './queue.ts';
import { createQuotas } from './quotas.ts';
import { Registry } from './registry.ts';
import { Results } from './results.ts';
import { RunLeases } from './runleases.ts';
import { Runs } from './runs.ts';
import { createSecrets } from './secrets.ts';
import { Sessions } from './sessions.ts';
import { createVerdicts } from './verdicts.ts';
import { createVitals } from './vitals.ts';

/** The interface through which worker and producer use Redis. */
export interface Farm extends AsyncDisposable, ReturnType<typeof partsOf> {
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
  /** Returns the BullMQ queue, which is opened at the first call and closed with the farm. */
  queue(): Queue<RolloutJob>;
  /**
   * Returns the `connection` option for a BullMQ Worker. In the role `worker`, the connection retries commands without limit. The farm
   * closes the connection.
   */
  bullConnection(): ConnectionOptions;
  /** Backend of BullMQ that uses {@link clock}. */
  readonly bullBackend: BackendFactory<RedisQueueBackend>;
}

export async function openConnectedFarm(
  config: CommonConfig,
  role: FarmRole,
  options: OpenOptions,
): Promise<Farm> {
  const log = options.log ?? silentLog();
  const keys = keysFor(config.redis_prefix);
  const connection = await connectRedis(config, role, options);
  const { redis, id, clock, address, hazards } = connection;
  watchOutages(connection, log);
  const { connect, queue, close } = openedLater(redis, role, keys);
  return {
    id,
    address,
    hazards,
    warnings: [...hazards, ...connection.warnings],
    clock,
    ...partsOf(config, { redis, keys, clock, address, connect, queue }),
    queue,
    bullConnection: connect,
    bullBackend: byClock(clock),
    async [Symbol.asyncDispose]() {
      await close();
      redis.disconnect();
    },
  };
}

/** Opens more connections and the queue at their first use. */
function openedLater(redis: Redis, role: FarmRole, keys: Keys) {
  const connections: Redis[] = [];
  let queue: Queue<RolloutJob> | null = null;
  const connect = (): Redis => {
    const copy = duplicateOf(redis, role === 'worker' ? { maxRetriesPerRequest: null } : {});
    connections.push(copy);
    return copy;
  };
  return {
    connect,
    queue(): Queue<RolloutJob> {
      queue ??= new Queue<RolloutJob>(QUEUES[0], {
        connection: connect(),
        prefix: keys.prefix,
        defaultJobOptions: { ...jobSettings },
      }).on('error', () => undefined);
      return queue;
    },
    async close(): Promise<void> {
      await queue?.close();
      for (const connection of connections) connection.disconnect();
    },
  };
}

/** Returns the parts of a farm. During an outage of Redis the parts throw UnusableError. */
function partsOf(config: CommonConfig, store: Store) {
  const guarded = <T extends object>(part: T) => throwingUnusable(part, store.address);
  const artifacts = createArtifacts(config, guarded(redisArtifacts(store, artifactLimits(config))));
  const registry = guarded(new Registry(store));
  const policies = guarded(new Policies(store));
  const results = guarded(new Results(store));
  const jobs = new Jobs(store);
  const admissions = guarded(createAdmissions(store));
  return {
    artifacts,
    admissions,
    registry,
    policies,
    results,
    ...guarded({
      commit: createCommit(store),
      /** Returns the state of queue, workers, Redis and artifact store, for metrics. */
      vitals: createVitals(store, { registry, policies, artifacts, results, admissions }),
      /** Returns the duration of one round trip to Redis in milliseconds. */
      async ping(): Promise<number> {
        const start = performance.now();
        await store.redis.ping();
        return performance.now() - start;
      },
    }),
    runs: guarded(new Runs(store, artifacts, jobs)),
    journal: guarded(new Journal(store)),
    groups: guarded(new Groups(store)),
    groupEnds: guarded(createGroupEnds(store, results)),
    passes: guarded(createPasses(store)),
    jobs: guarded(jobs),
    nodes: guarded(createNodes(store)),
    cancel: guarded(new Cancel(store)),
    secrets: guarded(createSecrets(store)),
    leases: guarded(createLeases(store)),
    controls: guarded(createControls(store)),
    history: guarded(createHistory(store)),
    probes: guarded(createProbes(store)),
    calls: guarded(new Calls(store)),
    quotas: guarded(createQuotas(store)),
    placement: guarded(createPlacement(store)),
    verdicts: guarded(createVerdicts(store)),
    live: guarded(createLive(store)),
    locks: guarded(createLocks(store)),
    runLeases: guarded(new RunLeases(store)),
    sessions: guarded(new Sessions(store)),
  };
}

/** Logs outages of Redis, and the hazards of the server after a failover. */
function watchOutages({ redis, address, inspect }: Connection, log: Log): void {
  let away = false;
  redis.on('reconnecting', () => {
    if (!away) log.warn({ redis: address }, 'connection to Redis lost: retrying');
    away = true;
  });
  redis.on('ready', () => {
    if (!away) return;
    away = false;
    log.info({ redis: address }, 'connection to Redis restored');
    inspect().then(
      ({ hazards }) => {
        for (const hazard of hazards) log.warn({ redis: address }, hazard);
      },
      (error: unknown) => log.warn({ redis: address }, errorMessage(error)),
    );
  });
}
