/** Builds the farm from its parts. This file is loaded when a farm is opened, so that threads do not load the Redis client. */
import { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { artifactLimits, createArtifacts } from '../artifacts/artifacts.ts';
import type { CommonConfig } from '../config/keys.ts';
import { errorMessage } from '../failures/errors.ts';
import { type Log, silentLog } from '../processes/log.ts';
import { newId } from '../records/ids.ts';
import type { RolloutJob } from '../records/job.ts';
import { redisArtifacts } from './artifacts.ts';
import { byClock } from './bullclock.ts';
import { createCalls } from './calls.ts';
import { createCancel } from './cancel.ts';
import { type Clock, createClock } from './clock.ts';
import { createCommit } from './commit.ts';
import { type Connection, connectRedis, duplicateOf } from './connect.ts';
import { createControls } from './controls.ts';
import type { Farm, FarmRole, OpenOptions } from './farm.ts';
import { createGroups } from './groups.ts';
import { createJobs } from './jobs.ts';
import { createJournal } from './journal.ts';
import { type Keys, keysFor } from './keys.ts';
import { createLeases } from './lease.ts';
import { createLive } from './live.ts';
import { createLocks } from './locks.ts';
import { createNodes } from './nodes.ts';
import { asUnusable, throwingUnusable } from './outage.ts';
import { createPlacement } from './placement.ts';
import { createPolicies } from './policies.ts';
import { createProbes } from './probes.ts';
import { jobSettings, QUEUES } from './queue.ts';
import { createQuotas } from './quotas.ts';
import { createRegistry } from './registry.ts';
import { createResults } from './results.ts';
import { createRuns } from './runs.ts';
import { createSecrets } from './secrets.ts';
import { createSessions } from './sessions.ts';
import { createVitals } from './vitals.ts';

export async function openConnectedFarm(
  config: CommonConfig,
  role: FarmRole,
  options: OpenOptions,
): Promise<Farm> {
  const log = options.log ?? silentLog();
  const keys = keysFor(config.redis_prefix);
  let id = '';
  const begin = async (redis: Redis): Promise<void> => {
    id = await farmId(redis, keys);
  };
  const connection = await connectRedis(config, role, log, { ...options, begin });
  const { redis, address, hazards } = connection;
  watchOutages(connection, log);
  const unusable = (error: unknown): never => {
    throw asUnusable(error, address) ?? error;
  };
  const clock = createClock(redis);
  await clock.ask().catch((error: unknown) => {
    redis.disconnect();
    unusable(error);
  });
  const opened = openedLater(redis, role, keys);
  return {
    id,
    address,
    hazards,
    warnings: [...hazards, ...connection.warnings],
    clock,
    ...partsOf(config, { redis, keys, clock, address, ...opened }),
    queue: opened.queue,
    bullConnection: opened.connect,
    bullBackend: byClock(clock),
    async ping() {
      const start = performance.now();
      await redis.ping().catch(unusable);
      return performance.now() - start;
    },
    async [Symbol.asyncDispose]() {
      await opened.close();
      redis.disconnect();
    },
  };
}

type Opened = { connect: () => Redis; queue: () => Queue<RolloutJob>; close: () => Promise<void> };

/** Opens more connections and the queue at their first use. */
function openedLater(redis: Redis, role: FarmRole, keys: Keys): Opened {
  const connections: Redis[] = [];
  let queue: Queue<RolloutJob> | null = null;
  const connect = (): Redis => {
    const copy = duplicateOf(redis, role === 'worker' ? { maxRetriesPerRequest: null } : {});
    connections.push(copy);
    return copy;
  };
  return {
    connect,
    queue() {
      queue ??= new Queue<RolloutJob>(QUEUES[0], {
        connection: connect(),
        prefix: keys.prefix,
        defaultJobOptions: { ...jobSettings },
      }).on('error', () => undefined);
      return queue;
    },
    async close() {
      await queue?.close();
      for (const connection of connections) connection.disconnect();
    },
  };
}

type PartDeps = Omit<Opened, 'close'> & { redis: Redis; keys: Keys; clock: Clock; address: string };

/** Returns the parts of a farm. During an outage of Redis the parts throw UnusableError. */
function partsOf(config: CommonConfig, { redis, keys, clock, address, connect, queue }: PartDeps) {
  const guarded = <T extends object>(part: T): T => throwingUnusable(part, address);
  const inRedis = redisArtifacts(redis, keys, artifactLimits(config));
  const artifacts = createArtifacts(config, guarded(inRedis));
  const registry = guarded(createRegistry(redis, keys, clock));
  const policies = guarded(createPolicies(redis, keys));
  const results = guarded(createResults(redis, keys, address));
  return {
    artifacts,
    registry,
    policies,
    results,
    ...guarded({
      commit: createCommit(redis, keys),
      vitals: createVitals({ redis, keys, clock, registry, policies, artifacts, results }),
    }),
    runs: guarded(createRuns({ redis, keys, clock, artifacts, queue })),
    journal: guarded(createJournal(redis, keys)),
    groups: guarded(createGroups(redis, keys, clock)),
    jobs: guarded(createJobs(redis, keys, clock, queue)),
    nodes: guarded(createNodes(redis, keys, clock)),
    cancel: guarded(createCancel(redis, keys)),
    secrets: guarded(createSecrets(redis, keys)),
    leases: guarded(createLeases(redis, keys)),
    controls: guarded(createControls(redis, keys, clock)),
    probes: guarded(createProbes(redis, keys)),
    calls: guarded(createCalls(redis, keys)),
    quotas: guarded(createQuotas(redis, keys)),
    placement: guarded(createPlacement(redis, keys, connect)),
    live: guarded(createLive(redis, keys)),
    locks: guarded(createLocks(redis, keys)),
    sessions: guarded(createSessions(redis, keys, connect)),
  };
}

/** Creates or reads the id of the farm; this also checks that the user may use the keys. */
async function farmId(redis: Redis, keys: Keys): Promise<string> {
  const fresh = newId();
  await redis.set(keys.farmId, fresh, 'NX');
  return (await redis.get(keys.farmId)) ?? fresh;
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
