/** How the farm stands at this moment: what waits and for how long, who works, and how full Redis and the store are. */
import type { Redis } from 'ioredis';
import type { ArtifactStore } from '../artifacts/store.ts';
import type { Vitals } from '../metrics/vitals.ts';
import { maskUrl } from '../security/secret.ts';
import type { Clock } from './clock.ts';
import type { Keys } from './keys.ts';
import type { Policies } from './policies.ts';
import { classRange, QUEUE_CLASSES, QUEUES, type QueueClass } from './queue.ts';
import type { Registry, WorkerRecord } from './registry.ts';
import type { Results } from './results.ts';

/** Of each class this many jobs, the next to run, are asked for their age: bounded however deep the queue is. */
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
export function createVitals({
  redis,
  keys,
  clock,
  registry,
  policies,
  artifacts,
  results,
}: VitalsDeps): () => Promise<Vitals> {
  const sum = async (read: (queue: (part: string) => string) => Promise<number>): Promise<number> => {
    const counts = await Promise.all(QUEUES.map((name) => read((part) => keys.queue(name, part))));
    return counts.reduce((total, count) => total + count, 0);
  };
  const jobs = async (): Promise<Vitals['jobs']> => {
    const [active, delayed, failed] = await Promise.all([
      sum((queue) => redis.llen(queue('active'))),
      sum((queue) => redis.zcard(queue('delayed'))),
      sum((queue) => redis.zcard(queue('failed'))),
    ]);
    return { active, delayed, failed };
  };
  const oldest = async (name: QueueClass): Promise<number> => {
    const [from, to] = classRange(name);
    const ages = QUEUES.map(async (queue) => {
      const next = await redis.zrangebyscore(keys.queue(queue, 'prioritized'), from, to, 'LIMIT', 0, SAMPLE);
      const since = await Promise.all(next.map((id) => redis.hget(keys.queue(queue, id), 'timestamp')));
      return since.flatMap((time) => (time === null ? [] : [Number(time)]));
    });
    const times = (await Promise.all(ages)).flat();
    return times.length === 0 ? 0 : Math.max(0, clock.now() - Math.min(...times)) / 1000;
  };
  const waiting = async (name: QueueClass): Promise<Vitals['queue'][number]> => {
    const [from, to] = classRange(name);
    const [count, oldest_seconds] = await Promise.all([
      sum((queue) => redis.zcount(queue('prioritized'), from, to)),
      oldest(name),
    ]);
    return { class: name, waiting: count, oldest_seconds };
  };
  const server = async (): Promise<Vitals['redis']> => {
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
  };
  const endpoints = async (): Promise<Vitals['endpoints']> => {
    const reports = await policies.reports();
    const views = Map.groupBy([...reports.values()].flat(), ({ url }) => endpointName(url));
    return [...views].map(([endpoint, seen]) => ({
      endpoint,
      up: seen.some(({ aside_seconds }) => aside_seconds === 0),
      load: seen.reduce((sum, { load }) => sum + load, 0),
    }));
  };
  const workers = async (records: readonly WorkerRecord[]): Promise<Vitals['workers']> => {
    const paused = records.filter((record) => record.paused !== null).length;
    const total = (key: 'active' | 'slots'): number => records.reduce((all, one) => all + one[key], 0);
    return {
      claiming: records.length - paused,
      paused,
      busy: total('active'),
      slots: total('slots'),
      lost: await registry.lost(),
    };
  };
  return async () => {
    const records = await registry.list();
    const [queue, counts, living, redisNow, store, known, asked, unreadable_results] = await Promise.all([
      Promise.all(QUEUE_CLASSES.map(waiting)),
      jobs(),
      workers(records),
      server(),
      artifacts.usage(),
      policies.list(),
      endpoints(),
      results.unreadable(),
    ]);
    return {
      queue,
      jobs: counts,
      unreadable_results,
      workers: living,
      redis: redisNow,
      artifacts: store,
      policies: known,
      endpoints: asked,
    };
  };
}

/** Without user, password and query, which have no place in a label. */
function endpointName(url: string): string {
  const parsed = URL.parse(url);
  return parsed === null ? maskUrl(url) : `${parsed.protocol}//${parsed.host}${parsed.pathname}`;
}
