/** Makes the schedule of faults: a pure function of the seed, so that a failed run can be repeated. */
import { hash32, unit } from '../src/policy/random.ts';

export const FAULT_KINDS = [
  'worker_kill',
  'worker_stop',
  'worker_clock',
  'redis_kill',
  'redis_pause',
  'redis_refuse',
  'redis_failover',
  'redis_and_gateway',
  'engine_restart',
  'endpoint_errors',
  'endpoint_hang',
  'endpoint_cut',
  'refit',
  'disk_full',
  'producer_kill',
  'gateway_kill',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

/** Stages of a rollout at which a worker is hit, as `swefarm logs` shows them. */
export const STAGES = ['sandbox', 'agent', 'patch', 'evaluation'] as const;
export type Stage = (typeof STAGES)[number];

export type ScheduledFault = {
  kind: FaultKind;
  /** Share of all results that exist when the fault strikes. */
  at: number;
  /** Position of the worker that is hit. */
  worker: number;
  /** Stage at which one of the worker's rollouts must be; null: any stage. */
  stage: Stage | null;
  /** Duration of the fault in ms; 0: it ends at once. */
  ms: number;
  /** Offset of the worker's clock, in faketime's syntax. */
  offset: string;
};

/** Longer than a job's lock (20 s) and the time until a lost lock is noticed (5 s). */
const BEYOND_LOCK_MS = 28_000;
/** Longer than all locks and leases of a worker in Redis. */
const BEYOND_ALL_MS = 40_000;

type WantedFault = Pick<ScheduledFault, 'kind'> & Partial<Pick<ScheduledFault, 'stage' | 'ms' | 'offset'>>;

const SHORT: readonly WantedFault[] = [
  { kind: 'worker_kill', stage: 'agent' },
  { kind: 'worker_kill', stage: 'evaluation' },
  { kind: 'worker_stop', stage: 'agent', ms: 4_000 },
  { kind: 'worker_clock', offset: '+1d' },
  { kind: 'redis_kill', ms: 2_000 },
  { kind: 'redis_refuse', ms: 1_000 },
  { kind: 'redis_and_gateway', ms: 25_000 },
  { kind: 'endpoint_errors', ms: 4_000 },
  { kind: 'endpoint_hang', ms: 5_000 },
  { kind: 'endpoint_cut', ms: 4_000 },
  { kind: 'refit', ms: 3_000 },
  { kind: 'disk_full', ms: 6_000 },
  { kind: 'producer_kill' },
  { kind: 'gateway_kill', ms: 1_000 },
];

const LONG: readonly WantedFault[] = [
  ...SHORT,
  ...STAGES.flatMap((stage): WantedFault[] => [
    { kind: 'worker_kill', stage },
    { kind: 'worker_stop', stage, ms: 6_000 },
  ]),
  { kind: 'worker_stop', stage: 'agent', ms: BEYOND_ALL_MS },
  { kind: 'worker_stop', stage: 'evaluation', ms: BEYOND_ALL_MS },
  { kind: 'worker_clock', offset: '-45m' },
  { kind: 'redis_kill', ms: BEYOND_LOCK_MS },
  { kind: 'redis_pause', ms: BEYOND_LOCK_MS },
  { kind: 'redis_refuse', ms: 1_000 },
  { kind: 'redis_refuse', ms: 5_000 },
  { kind: 'engine_restart', ms: 3_000 },
  { kind: 'engine_restart', ms: 8_000 },
  { kind: 'endpoint_errors', ms: 10_000 },
  { kind: 'refit', ms: 6_000 },
  { kind: 'disk_full', ms: 10_000 },
  { kind: 'producer_kill' },
  { kind: 'gateway_kill', ms: 4_000 },
];

/** Additional faults of a farm whose Redis has a standby. */
const LED: readonly WantedFault[] = [{ kind: 'redis_failover' }, { kind: 'redis_failover' }];

/** Share of the results before which all faults strike, so that enough work is left to observe the recovery. */
const LAST_AT = 0.8;

export type ScheduleOptions = {
  seed: number;
  workers: number;
  short: boolean;
  /** Whether `swefarm redis` leads Redis. */
  led: boolean;
};

export function makeSchedule({ seed, workers, short, led }: ScheduleOptions): ScheduledFault[] {
  const wanted = [...(short ? SHORT : LONG), ...(led ? LED.slice(short ? 1 : 0) : [])];
  const draw = (what: string, index: number): number => unit(hash32(what, seed), index);
  const order = wanted
    .map((fault, index) => ({ fault, order: draw('order', index) }))
    .sort((a, b) => a.order - b.order);
  return order.map(({ fault }, index) => ({
    kind: fault.kind,
    at: Math.round(((index + 0.5) / wanted.length) * LAST_AT * 1000) / 1000,
    worker: Math.floor(draw('worker', index) * workers),
    stage: fault.stage ?? null,
    ms: fault.ms ?? 0,
    offset: fault.offset ?? '',
  }));
}
