/** Which faults strike when and whom: a pure function of the seed, so that a run that went wrong can be had again. */
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

/** Stages of a rollout at which a worker is hit, as `swefarm status` and the page know them. */
export const STAGES = ['sandbox', 'agent', 'patch', 'evaluation'] as const;
export type Stage = (typeof STAGES)[number];

export type ScheduledFault = {
  kind: FaultKind;
  /** Strikes when this share of all results is there. */
  at: number;
  /** Position of the worker it is for. */
  worker: number;
  /** The worker is hit while a rollout of its is at this stage. */
  stage: Stage | null;
  /** How long it lasts; 0: it is over at once. */
  ms: number;
  /** Of a clock, as faketime takes it. */
  offset: string;
};

/** Longer than a job's lock (20 s) and the time in which a lost one is noticed (5 s). */
const BEYOND_LOCK_MS = 28_000;
/** Longer than anything that a worker holds in Redis. */
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

/** Where a standby waits for the leader of Redis to end. */
const LED: readonly WantedFault[] = [{ kind: 'redis_failover' }, { kind: 'redis_failover' }];

/** The last fault strikes when this share of the results is there, so that the farm has work left to recover with. */
const LAST_AT = 0.8;

export type ScheduleOptions = {
  seed: number;
  workers: number;
  short: boolean;
  /** Redis is led by `swefarm redis`. */
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
