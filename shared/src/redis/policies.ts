/** Stores the policies that trainers set, and the reports of workers on endpoints. */
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { EndpointView, PolicyChange, PolicyName, PolicyRecord } from '../records/policy.ts';
import type { Keys } from './keys.ts';
import { loadScript } from './script.ts';

export type Policies = {
  /** Creates or changes the record of a policy. Throws ZodError for an invalid change. */
  set(name: string, change: PolicyChange): Promise<PolicyRecord>;
  /** Returns the records of these policies; unknown policies are omitted. */
  get(names: readonly string[]): Promise<PolicyRecord[]>;
  list(): Promise<PolicyRecord[]>;
  remove(name: string): Promise<void>;
  /** Writes the report of a worker for 15 s; an empty report removes it. Returns the number of rollouts of other workers by endpoint. */
  report(worker: string, endpoints: readonly EndpointView[]): Promise<Map<string, number>>;
  /** Returns the reports that have not expired, by worker. */
  reports(): Promise<Map<string, EndpointView[]>>;
};

/** Life time of a policy after its last change. The limit ends a pause that a trainer forgot. */
const LIFE_SECONDS = 30 * 24 * 3600;
const REPORT_LIFE_MS = 15_000;

const Endpoints = z.array(z.string());
const Report = z.array(EndpointView);

export function createPolicies(redis: Redis, keys: Keys): Policies {
  const scripts = { set: loadScript(redis, 'policy_set'), report: loadScript(redis, 'policy_report') };
  const { views, lapses, loads } = keys.policyReports;
  const get = async (names: readonly string[]): Promise<PolicyRecord[]> => {
    if (names.length === 0) return [];
    const read = redis.pipeline();
    for (const name of names) read.hgetall(keys.policy(name));
    const replies = (await read.exec()) ?? [];
    return replies.flatMap(([error, fields], index) => {
      if (error) throw error;
      const record = readRecord(names[index] ?? '', fields as Record<string, string>);
      return record ? [record] : [];
    });
  };
  return {
    get,
    async set(given, change) {
      const name = PolicyName.parse(given);
      const { version, endpoints, state } = PolicyChange.parse(change);
      const fields = [
        ...(version === undefined ? [] : ['version', version]),
        ...(endpoints === undefined ? [] : ['endpoints', JSON.stringify(endpoints)]),
        ...(state === undefined ? [] : ['state', state]),
      ];
      await scripts.set([keys.policy(name), keys.policies], [name, LIFE_SECONDS, ...fields]);
      const [record] = await get([name]);
      return record ?? { name, version: null, versions: [], endpoints: [], state: 'serving', changed_at: 0 };
    },
    list: async () => await get((await redis.smembers(keys.policies)).sort()),
    remove: async (name) =>
      void (await redis.multi().del(keys.policy(name)).srem(keys.policies, name).exec()),
    async report(worker, endpoints) {
      const args = [worker, JSON.stringify(endpoints), REPORT_LIFE_MS];
      const sums = (await scripts.report([views, lapses, loads], args)) as (string | number)[];
      const pairs = sums.flatMap((url, at): [string, number][] =>
        at % 2 === 0 ? [[String(url), Number(sums[at + 1])]] : [],
      );
      return new Map(pairs.filter(([, load]) => load > 0));
    },
    async reports() {
      const [seconds] = await redis.time();
      const workers = await redis.zrangebyscore(lapses, Number(seconds) * 1000, '+inf');
      if (workers.length === 0) return new Map();
      const texts = await redis.hmget(views, ...workers);
      return new Map(
        workers.flatMap((worker, index) => {
          const text = texts[index];
          return text ? [[worker, Report.parse(JSON.parse(text))] as const] : [];
        }),
      );
    },
  };
}

function readRecord(name: string, fields: Record<string, string>): PolicyRecord | null {
  if (fields.changed_at === undefined) return null;
  return PolicyRecord.parse({
    name,
    version: fields.version ?? null,
    versions: JSON.parse(fields.versions ?? '[]'),
    endpoints: Endpoints.parse(JSON.parse(fields.endpoints ?? '[]')),
    state: fields.state ?? 'serving',
    changed_at: Number(fields.changed_at),
  });
}
