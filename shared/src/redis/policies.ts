/** Stores the policies that trainers set, and the reports of workers on endpoints. */
import { z } from 'zod';
import { EndpointView, PolicyChange, PolicyName, PolicyRecord } from '../records/policy.ts';
import { pairsOf } from './pairs.ts';
import { Part } from './part.ts';

/** Life time of a policy after its last change. The limit ends a pause that a trainer forgot. */
const LIFE_SECONDS = 30 * 24 * 3600;
const REPORT_LIFE_MS = 15_000;

const Endpoints = z.array(z.string());
const Report = z.array(EndpointView);

export class Policies extends Part {
  readonly #set = this.script('policy_set');
  readonly #report = this.script('policy_report');

  /** Creates or changes the record of a policy. Throws ZodError for an invalid name or change. */
  async set(given: string, change: PolicyChange): Promise<PolicyRecord> {
    const name = PolicyName.parse(given);
    const { version, endpoints, model, state } = PolicyChange.parse(change);
    const fields = [
      ...(version === undefined ? [] : ['version', version]),
      ...(endpoints === undefined ? [] : ['endpoints', JSON.stringify(endpoints)]),
      ...(model === undefined ? [] : ['model', model]),
      ...(state === undefined ? [] : ['state', state]),
    ];
    await this.#set([this.keys.policy(name), this.keys.policies], [name, LIFE_SECONDS, ...fields]);
    const [record] = await this.get([name]);
    return record ?? readRecord(name, { changed_at: '0' });
  }

  /** Returns the records of these policies; unknown policies are omitted. */
  async get(names: readonly string[]): Promise<PolicyRecord[]> {
    if (names.length === 0) return [];
    const read = this.redis.pipeline();
    for (const name of names) read.hgetall(this.keys.policy(name));
    const replies = (await read.exec()) ?? [];
    return replies.flatMap(([error, fields], index) => {
      if (error) throw error;
      const known = fields as Record<string, string>;
      return known.changed_at === undefined ? [] : readRecord(names[index] ?? '', known);
    });
  }

  async list(): Promise<PolicyRecord[]> {
    return await this.get((await this.redis.smembers(this.keys.policies)).sort());
  }

  async remove(name: string): Promise<void> {
    await this.redis.multi().del(this.keys.policy(name)).srem(this.keys.policies, name).exec();
  }

  /** Writes the report of a worker for 15 s; an empty report removes it. Returns the number of rollouts of other workers by endpoint. */
  async report(worker: string, endpoints: readonly EndpointView[]): Promise<Map<string, number>> {
    const { views, lapses, loads } = this.keys.policyReports;
    const args = [worker, JSON.stringify(endpoints), REPORT_LIFE_MS];
    const sums = (await this.#report([views, lapses, loads], args)) as (string | number)[];
    const pairs = pairsOf(sums).map(([url, load]): [string, number] => [String(url), Number(load)]);
    return new Map(pairs.filter(([, load]) => load > 0));
  }

  /** Returns the reports that have not expired, by worker. */
  async reports(): Promise<Map<string, EndpointView[]>> {
    const { views, lapses } = this.keys.policyReports;
    const workers = await this.redis.zrangebyscore(lapses, await this.store.clock.ask(), '+inf');
    if (workers.length === 0) return new Map();
    const texts = await this.redis.hmget(views, ...workers);
    return new Map(
      workers.flatMap((worker, index) => {
        const text = texts[index];
        return text ? [[worker, Report.parse(JSON.parse(text))] as const] : [];
      }),
    );
  }
}

function readRecord(name: string, fields: Record<string, string>): PolicyRecord {
  return PolicyRecord.parse({
    name,
    version: fields.version ?? null,
    versions: JSON.parse(fields.versions ?? '[]'),
    endpoints: Endpoints.parse(JSON.parse(fields.endpoints ?? '[]')),
    model: fields.model ?? null,
    state: fields.state ?? 'serving',
    changed_at: Number(fields.changed_at),
  });
}
