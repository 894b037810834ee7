/** The state of the farm now: what waits and for how long, which workers work, and how full Redis and the artifact store are. */
import type { Redis } from 'ioredis';
import type { ArtifactStore } from '../artifacts/store.ts';
import type { Vitals } from '../metrics/vitals.ts';
import { maskUrl } from '../security/secret.ts';
import type { Clock } from './clock.ts';
import type { Keys } from './keys.ts';
import type { Policies } from './policies.ts';
import { classRange, QUEUE_CLASSES, QUEUES, type QueueClass } from './queue.ts';
import type { Registry } from './registry.ts';
import type { Results } from './results.ts';

/** The age is read of this many jobs of each class, the next to run: bounded, however long the queue is. */
const SAMPLE = 200;

export type VitalsDeps = {
  redis: Redis;
  keys: Keys;
  clock: Clock;
  registry: Registry;
  policies: Policies;
  artifacts: ArtifactStore;
  results: Pick<Results, 'unreadable'>;
};

/** Reads them; throws what Redis throws. */
export function createVitals(deps: VitalsDeps): () => Promise<Vitals> {
  return async () => {
    const [queue, jobs, workers, redis, artifacts, policies, endpoints, unreadable_results] =
      await Promise.all([
        Promise.all(QUEUE_CLASSES.map((name) => waitingJobs(deps, name))),
        countJobs(deps),
        countWorkers(deps),
        describeServer(deps),
        deps.artifacts.usage(),
        deps.policies.list(),
        describeEndpoints(deps),
        deps.results.unreadable(),
      ]);
    return { queue, jobs, unreadable_results, workers, redis, artifacts, policies, endpoints };
  };
}

type Queues = Pick<VitalsDeps, 'redis' | 'keys' | 'clock'>;

/** The sum of a number over all queues. */
async function overQueues(
  { keys }: Queues,
  read: (queue: (part: string) => string) => Promise<number>,
): Promise<number> {
  const counts = await Promise.all(QUEUES.map((name) => read((part) => keys.queue(name, part))));
  return counts.reduce((total, count) => total + count, 0);
}

async function countJobs(deps: Queues): Promise<Vitals['jobs']> {
  const { redis } = deps;
  const [active, delayed, failed] = await Promise.all([
    overQueues(deps, (queue) => redis.llen(queue('active'))),
    overQueues(deps, (queue) => redis.zcard(queue('delayed'))),
    overQueues(deps, (queue) => redis.zcard(queue('failed'))),
  ]);
  return { active, delayed, failed };
}

async function waitingJobs(deps: Queues, name: QueueClass): Promise<Vitals['queue'][number]> {
  const [from, to] = classRange(name);
  const [waiting, oldest_seconds] = await Promise.all([
    overQueues(deps, (queue) => deps.redis.zcount(queue('prioritized'), from, to)),
    oldestSeconds(deps, name),
  ]);
  return { class: name, waiting, oldest_seconds };
}

async function oldestSeconds({ redis, keys, clock }: Queues, name: QueueClass): Promise<number> {
  const [from, to] = classRange(name);
  const times = await Promise.all(
    QUEUES.map(async (queue) => {
      const next = await redis.zrangebyscore(keys.queue(queue, 'prioritized'), from, to, 'LIMIT', 0, SAMPLE);
      const since = await Promise.all(next.map((id) => redis.hget(keys.queue(queue, id), 'timestamp')));
      return since.flatMap((time) => (time === null ? [] : [Number(time)]));
    }),
  );
  const oldest = Math.min(...times.flat());
  return Number.isFinite(oldest) ? Math.max(0, clock.now() - oldest) / 1000 : 0;
}

async function describeServer({ redis }: Queues): Promise<Vitals['redis']> {
  const start = performance.now();
  await redis.ping();
  const seconds = (performance.now() - start) / 1000;
  const info = await redis.info();
  const field = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  return {
    seconds,
    used_bytes: field('used_memory'),
    limit_bytes: field('maxmemory') || field('total_system_memory'),
    clients: field('connected_clients'),
  };
}

async function countWorkers({ registry }: VitalsDeps): Promise<Vitals['workers']> {
  const records = await registry.list();
  const paused = records.filter((record) => record.paused !== null).length;
  const total = (key: 'active' | 'slots'): number => records.reduce((sum, one) => sum + one[key], 0);
  return {
    claiming: records.length - paused,
    paused,
    busy: total('active'),
    slots: total('slots'),
    lost: await registry.lost(),
  };
}

async function describeEndpoints({ policies }: VitalsDeps): Promise<Vitals['endpoints']> {
  const reports = await policies.reports();
  const views = Map.groupBy([...reports.values()].flat(), ({ url }) => endpointName(url));
  return [...views].map(([endpoint, seen]) => ({
    endpoint,
    up: seen.some(({ aside_seconds }) => aside_seconds === 0),
    load: seen.reduce((sum, { load }) => sum + load, 0),
  }));
}

/** Without user, password and query, which have no place in a label. */
function endpointName(url: string): string {
  const parsed = URL.parse(url);
  return parsed === null ? maskUrl(url) : `${parsed.protocol}//${parsed.host}${parsed.pathname}`;
}
