/** Makes metrics from the state of queue, workers and Redis. */
import type { RunRecord } from '../records/job.ts';
import { type PolicyRecord, PolicyState } from '../records/policy.ts';
import type { Point } from './definition.ts';
import { LIVE_METRICS as M } from './live.ts';
import { type Family, family } from './text.ts';

export type Vitals = {
  /** State of the queue by class of priority. `oldest_seconds`: age of the oldest of the next jobs; 0 if no job waits. */
  queue: { class: RunRecord['kind']; waiting: number; oldest_seconds: number }[];
  jobs: { active: number; delayed: number; failed: number };
  unreadable_results: number;
  workers: { claiming: number; paused: number; busy: number; slots: number; lost: number };
  redis: { seconds: number; used_bytes: number; limit_bytes: number; clients: number };
  artifacts: { used_bytes: number; budget_bytes: number; artifacts: number };
  policies: Pick<PolicyRecord, 'name' | 'state'>[];
  /** State of each endpoint. `up`: at least one worker can use the endpoint. `load`: rollouts bound to the endpoint. */
  endpoints: { endpoint: string; up: boolean; load: number }[];
  /** Loads of endpoints by their own metrics. */
  loads: { endpoint: string; kv_usage: number; running: number; waiting: number; preemptions: number }[];
  /** `limit`: null for no limit. `playing` includes suspended rollouts, which are beyond the limit. */
  admissions: { policy: string; limit: number | null; playing: number; waiting: number }[];
};

/** Returns the metrics of `vitals`; null: Redis does not answer. */
export function vitalFamilies(vitals: Vitals | null): Family[] {
  if (vitals === null) return [family(M.redisUp, single(0))];
  const { queue, jobs, workers, redis, artifacts, policies, endpoints, unreadable_results } = vitals;
  const { loads, admissions } = vitals;
  const { claiming, paused, busy, slots, lost } = workers;
  const waiting = queue.map((one): Pair => [one.class, one.waiting]);
  const oldest = queue.map((one): Pair => [one.class, one.oldest_seconds]);
  const up = endpoints.map((one): Pair => [one.endpoint, one.up ? 1 : 0]);
  const load = endpoints.map((one): Pair => [one.endpoint, one.load]);
  const states = policies.flatMap(({ name, state }) =>
    PolicyState.options.map((one) => ({
      labels: { policy: name, state: one },
      value: one === state ? 1 : 0,
    })),
  );
  return [
    family(M.redisUp, single(1)),
    family(M.queueDepth, by('class', waiting)),
    family(M.queueOldest, by('class', oldest)),
    family(M.queueJobs, by('state', Object.entries(jobs))),
    family(M.workers, by('state', Object.entries({ claiming, paused }))),
    family(M.farmSlots, by('state', Object.entries({ busy, free: slots - busy }))),
    family(M.workersLost, single(lost)),
    family(M.resultsUnreadable, single(unreadable_results)),
    family(M.policyState, states),
    family(M.endpointUp, by('endpoint', up)),
    family(M.endpointLoad, by('endpoint', load)),
    ...loadFamilies(loads),
    ...admissionFamilies(admissions),
    family(M.redisSeconds, single(redis.seconds)),
    family(M.redisMemory, single(redis.used_bytes)),
    family(M.redisMemoryLimit, single(redis.limit_bytes)),
    family(M.redisClients, single(redis.clients)),
    family(M.artifactBytes, single(artifacts.used_bytes)),
    family(M.artifactBudget, single(artifacts.budget_bytes)),
    family(M.artifacts, single(artifacts.artifacts)),
  ];
}

type Pair = [label: string, value: number];

const single = (value: number): Point<never>[] => [{ labels: {}, value }];

const by = <Label extends string>(label: Label, pairs: readonly Pair[]): Point<Label>[] =>
  pairs.map(([name, value]) => ({ labels: { [label]: name } as Record<Label, string>, value }));

const loadFamilies = (loads: Vitals['loads']): Family[] => [
  family(
    M.endpointKvUsage,
    by(
      'endpoint',
      loads.map(({ endpoint, kv_usage }): Pair => [endpoint, kv_usage]),
    ),
  ),
  family(
    M.endpointRequests,
    loads.flatMap(({ endpoint, running, waiting }) => byState({ endpoint }, { running, waiting })),
  ),
  family(
    M.endpointPreemptions,
    by(
      'endpoint',
      loads.map(({ endpoint, preemptions }): Pair => [endpoint, preemptions]),
    ),
  ),
];

const admissionFamilies = (admissions: Vitals['admissions']): Family[] => [
  family(
    M.admissionRollouts,
    admissions.flatMap(({ policy, limit, playing, waiting }) => {
      const suspended = limit === null ? 0 : Math.max(0, playing - limit);
      return byState({ policy }, { playing: playing - suspended, suspended, waiting });
    }),
  ),
  family(
    M.admissionLimit,
    by(
      'policy',
      admissions.flatMap(({ policy, limit }): Pair[] => (limit === null ? [] : [[policy, limit]])),
    ),
  ),
];

/** Returns a point for each state, with the given label. */
const byState = <Label extends string>(
  label: Record<Label, string>,
  counts: Readonly<Record<string, number>>,
): Point<Label | 'state'>[] =>
  Object.entries(counts).map(([state, value]) => ({
    labels: { ...label, state } as Record<Label | 'state', string>,
    value,
  }));
