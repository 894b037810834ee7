/** Builds the farm from its parts. Loaded only when a farm is opened, so that threads need no Redis client. */
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
import { createClock } from './clock.ts';
import { createCommit } from './commit.ts';
import { type Connection, connectRedis, duplicateOf } from './connect.ts';
import type { Farm, FarmRole, OpenOptions } from './farm.ts';
import { createGroups } from './groups.ts';
import { createJobs } from './jobs.ts';
import { createJournal } from './journal.ts';
import { type Keys, keysFor } from './keys.ts';
import { createLeases } from './lease.ts';
import { createLive } from './live.ts';
import { createLocks } from './locks.ts';
import { createNodes } from './nodes.ts';
import { asUnusable, saysOutages } from './outage.ts';
import { createPlacement } from './placement.ts';
import { createPolicies } from './policies.ts';
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
  const warnings = [...hazards, ...connection.warnings];
  watchOutages(connection, log);
  const says = <T extends object>(part: T): T => saysOutages(part, address);
  const artifacts = createArtifacts(config, says(redisArtifacts(redis, keys, artifactLimits(config))));
  const connections: Redis[] = [];
  let queue: Queue<RolloutJob> | null = null;

  const connect = (): Redis => {
    const copy = duplicateOf(redis, role === 'worker' ? { maxRetriesPerRequest: null } : {});
    connections.push(copy);
    return copy;
  };
  const openQueue = (): Queue<RolloutJob> => {
    if (queue) return queue;
    queue = new Queue<RolloutJob>(QUEUES[0], {
      connection: connect(),
      prefix: keys.prefix,
      defaultJobOptions: { ...jobSettings },
    });
    return queue.on('error', () => undefined);
  };
  const clock = createClock(redis);
  const { commit } = says({ commit: createCommit(redis, keys) });
  const registry = says(createRegistry(redis, keys, clock));
  const policies = says(createPolicies(redis, keys));
  const results = says(createResults(redis, keys, address));
  const { vitals } = says({
    vitals: createVitals({ redis, keys, clock, registry, policies, artifacts, results }),
  });
  await clock.ask().catch((error: unknown) => {
    redis.disconnect();
    throw asUnusable(error, address) ?? error;
  });

  return {
    id,
    address,
    hazards,
    warnings,
    commit,
    runs: says(createRuns({ redis, keys, clock, artifacts, queue: openQueue })),
    journal: says(createJournal(redis, keys)),
    results,
    groups: says(createGroups(redis, keys, clock)),
    jobs: says(createJobs(redis, keys, clock, openQueue)),
    nodes: says(createNodes(redis, keys, clock)),
    cancel: says(createCancel(redis, keys)),
    registry,
    secrets: says(createSecrets(redis, keys)),
    leases: says(createLeases(redis, keys)),
    calls: says(createCalls(redis, keys)),
    quotas: says(createQuotas(redis, keys)),
    policies,
    placement: says(createPlacement(redis, keys, connect)),
    live: says(createLive(redis, keys)),
    locks: says(createLocks(redis, keys)),
    sessions: says(createSessions(redis, keys, connect)),
    artifacts,
    vitals,
    queue: openQueue,
    clock,
    bullConnection: connect,
    bullBackend: byClock(clock),
    async ping() {
      const start = performance.now();
      await redis.ping().catch((error: unknown) => {
        throw asUnusable(error, address) ?? error;
      });
      return performance.now() - start;
    },
    async [Symbol.asyncDispose]() {
      await queue?.close();
      for (const connection of [...connections, redis]) connection.disconnect();
    },
  };
}

/** Made once per Redis and prefix; also the first proof that our user may use these keys. */
async function farmId(redis: Redis, keys: Keys): Promise<string> {
  const fresh = newId();
  await redis.set(keys.farmId, fresh, 'NX');
  return (await redis.get(keys.farmId)) ?? fresh;
}

/** Says when Redis is lost and found again, and what the server that was found lacks: after a failover it may be another one. */
function watchOutages({ redis, address, inspect }: Connection, log: Log): void {
  let away = false;
  redis.on('reconnecting', () => {
    if (!away) log.warn({ redis: address }, 'the connection to Redis is lost; trying again');
    away = true;
  });
  redis.on('ready', () => {
    if (!away) return;
    away = false;
    log.info({ redis: address }, 'connected to Redis again');
    inspect().then(
      ({ hazards }) => {
        for (const hazard of hazards) log.warn({ redis: address }, hazard);
      },
      (error: unknown) => log.warn({ redis: address }, errorMessage(error)),
    );
  });
}
