import type { ArtifactStore } from '../artifacts/store.ts';
import type { Vitals } from '../metrics/vitals.ts';
import { maskUrl } from '../security/secret.ts';
import type { AdmissionPool, Admissions } from './admission.ts';
import type { Store } from './part.ts';
import type { Policies } from './policies.ts';
import { classRange, QUEUE_CLASSES, QUEUES, type QueueClass } from './queue.ts';
import type { Registry } from './registry.ts';
import type { Results } from './results.ts';

/** Number of jobs of a class, from the next one, among which the oldest is searched. */
const SAMPLE = 200;

type Parts = {
  registry: Pick<Registry, 'list' | 'lost'>;
  policies: Pick<Policies, 'list' | 'reports'>;
  artifacts: Pick<ArtifactStore, 'usage'>;
  results: Pick<Results, 'unreadable'>;
  admissions: Pick<Admissions, 'list'>;
};

export const createVitals = (store: Store, parts: Parts) => async (): Promise<Vitals> => {
  const [queue, jobs, workers, redis, artifacts, policies, endpoints, unreadable, pools] = await Promise.all([
    Promise.all(QUEUE_CLASSES.map((name) => waitingJobs(store, name))),
    countJobs(store),
    countWorkers(parts.registry),
    describeServer(store),
    parts.artifacts.usage(),
    parts.policies.list(),
    describeEndpoints(parts.policies),
    parts.results.unreadable(),
    parts.admissions.list(),
  ]);
  const state = { queue, jobs, workers, redis, artifacts, policies, endpoints };
  const admissions = pools.map(({ pool, limit, playing, waiting }) => ({
    ...{ policy: pool, limit, playing, waiting },
  }));
  return { ...state, loads: loadsOf(pools), admissions, unreadable_results: unreadable };
};

const [QUEUE] = QUEUES;

async function countJobs({ redis, keys }: Store): Promise<Vitals['jobs']> {
  const [active, delayed, failed] = await Promise.all([
    redis.llen(keys.queue(QUEUE, 'active')),
    redis.zcard(keys.queue(QUEUE, 'delayed')),
    redis.zcard(keys.queue(QUEUE, 'failed')),
  ]);
  return { active, delayed, failed };
}

async function waitingJobs(
  { redis, keys, clock }: Store,
  name: QueueClass,
): Promise<Vitals['queue'][number]> {
  const [from, to] = classRange(name);
  const waitingKey = keys.queue(QUEUE, 'prioritized');
  const [waiting, next] = await Promise.all([
    redis.zcount(waitingKey, from, to),
    redis.zrangebyscore(waitingKey, from, to, 'LIMIT', 0, SAMPLE),
  ]);
  const times = await Promise.all(next.map((id) => redis.hget(keys.queue(QUEUE, id), 'timestamp')));
  const oldest = Math.min(...times.flatMap((time) => (time === null ? [] : [Number(time)])));
  const oldest_seconds = Number.isFinite(oldest) ? Math.max(0, clock.now() - oldest) / 1000 : 0;
  return { class: name, waiting, oldest_seconds };
}

async function describeServer({ redis }: Store): Promise<Vitals['redis']> {
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

async function countWorkers(registry: Parts['registry']): Promise<Vitals['workers']> {
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

async function describeEndpoints(policies: Parts['policies']): Promise<Vitals['endpoints']> {
  const reports = await policies.reports();
  const views = Map.groupBy([...reports.values()].flat(), ({ url }) => endpointName(url));
  return [...views].map(([endpoint, seen]) => ({
    endpoint,
    up: seen.some(({ aside_seconds }) => aside_seconds === 0),
    load: seen.reduce((sum, { load }) => sum + load, 0),
  }));
}

/** Returns the load of each endpoint once: several pools may have the same endpoint. */
function loadsOf(pools: readonly AdmissionPool[]): Vitals['loads'] {
  const loads = pools
    .flatMap(({ state }) => state?.endpoints ?? [])
    .map((load) => ({ ...load, endpoint: endpointName(load.endpoint) }));
  return [...new Map(loads.map((load) => [load.endpoint, load])).values()];
}

/** Returns a URL without user, password and query. */
function endpointName(url: string): string {
  const parsed = URL.parse(url);
  return parsed === null ? maskUrl(url) : `${parsed.protocol}//${parsed.host}${parsed.pathname}`;
}
