/** The policies that trainers speak of, by name, and what each worker sees of their endpoints. */
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { EndpointView, PolicyChange, PolicyName, PolicyRecord } from '../policy.ts';
import type { Keys } from './keys.ts';
import { loadScript } from './script.ts';

export type Policies = {
  /** Makes the record or changes what is named; the same call again changes nothing. Throws ZodError for a bad change. */
  set(name: string, change: PolicyChange): Promise<PolicyRecord>;
  /** Those of the names that are known, in one round trip. */
  get(names: readonly string[]): Promise<PolicyRecord[]>;
  list(): Promise<PolicyRecord[]>;
  remove(name: string): Promise<void>;
  /** What a worker sees of its endpoints; lives 15 s. */
  report(worker: string, endpoints: readonly EndpointView[]): Promise<void>;
  /** The reports of these workers that still live, by worker. */
  reports(workers: readonly string[]): Promise<Map<string, EndpointView[]>>;
};

/** A policy nobody spoke of for so long is forgotten; a worker that follows it cannot then be held up by it. */
const LIFE_SECONDS = 30 * 24 * 3600;
const REPORT_LIFE_MS = 15_000;

const Endpoints = z.array(z.string());
const Report = z.array(EndpointView);

export function createPolicies(redis: Redis, keys: Keys): Policies {
  const script = loadScript(redis, 'policy_set');
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
      await script([keys.policy(name), keys.policies], [name, LIFE_SECONDS, ...fields]);
      const [record] = await get([name]);
      return record ?? { name, version: null, versions: [], endpoints: [], state: 'serving', changed_at: 0 };
    },
    list: async () => await get((await redis.smembers(keys.policies)).sort()),
    remove: async (name) =>
      void (await redis.multi().del(keys.policy(name)).srem(keys.policies, name).exec()),
    report: async (worker, endpoints) =>
      void (await redis.set(keys.policyReport(worker), JSON.stringify(endpoints), 'PX', REPORT_LIFE_MS)),
    async reports(workers) {
      if (workers.length === 0) return new Map();
      const texts = await redis.mget(workers.map(keys.policyReport));
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
