/**
 * Sets the limit of rollouts that play, from the load of their endpoints. The limit grows while the endpoints have room: by a factor until
 * its first fall, then by a constant. It falls by a factor when an endpoint preempts, queues or refuses requests, or its KV cache is
 * almost full. The signals are those of prime-rl's ConcurrencyController. That controller cancels rollouts beyond the limit; this
 * farm suspends them before their next turn.
 */
import type { AdmissionState, EndpointLoad } from '@swefarm/shared';

/** First limit, for each endpoint. */
const START = 32;
/** Factor of growth at each poll. It is low because the load lags behind the limit while sandboxes start and contexts grow. */
const GROWTH_FACTOR = 1.1;
/** Rollouts for each endpoint by which the limit grows in one poll after its first fall. */
const GROWTH = 1;
/** The limit grows below this usage of the KV cache. */
const GROW_BELOW = 0.6;
/** Above this usage of the KV cache, the limit falls in proportion, towards TARGET_USAGE. */
const FALL_ABOVE = 0.9;
const TARGET_USAGE = 0.8;
/** A queue is long if its length exceeds this share of the running requests. The limit falls after QUEUE_POLLS polls with a long queue. */
const QUEUE_RATIO = 0.5;
const QUEUE_POLLS = 3;
const QUEUE_FALL = 0.9;
/** Factor after preemptions, and after answers with status 429 or 503. */
const OVERLOAD_FALL = 0.8;
/** Maximum number of polls after a fall during which the limit does not change, while the requests of suspended rollouts end. */
const DRAIN_POLLS = 15;
/** Time for which endpoints that no longer report their load leave the limit unchanged. */
const BLIND_MS = 60_000;

export type Observed = {
  /** Endpoints of the policy, and the loads of those that report one. */
  endpoints: number;
  loads: readonly EndpointLoad[];
  /** Sum of all 429 and 503 answers. */
  refused: number;
  /** Rollouts of the pool; `playing` includes suspended ones. */
  playing: number;
  waiting: number;
  /** Time in milliseconds since the epoch. */
  now: number;
};

/** Returns the next state. Without metrics and refusals there is no limit. @param before null: the endpoints were never polled */
export function nextState(before: AdmissionState | null, seen: Observed): AdmissionState {
  const state = before ?? FIRST;
  const { loads, refused, now } = seen;
  // An API server that is too loaded to answer is no reason to grow.
  if (loads.length === 0 && state.endpoints.length > 0 && now - state.at < BLIND_MS) return state;
  const measured = { ...state, refused, endpoints: [...loads], at: now };
  // The counter may be new: its earlier refusals are no sign of the load now.
  const refusals = before === null ? 0 : Math.max(0, refused - before.refused);
  const limit = state.limit ?? firstLimit(seen, refusals);
  if (limit === null) return measured;
  const signals = signalsOf(state, loads, refusals);
  const known = { ...measured, limit, queue_polls: signals.queuePolls };
  if (state.wait_polls > 0) {
    const { running, waiting } = sumsOf(loads);
    const drained = signals.overload === null && running + waiting <= limit;
    return { ...known, wait_polls: drained ? 0 : state.wait_polls - 1 };
  }
  if (signals.overload !== null) return fallen(known, seen, signals.overload);
  return signals.hasRoom ? { ...known, limit: grown(known, limit, seen) } : known;
}

const FIRST: AdmissionState = {
  ...{ limit: null, threshold: null, wait_polls: 0, queue_polls: 0, refused: 0, endpoints: [] },
  ...{ reason: null, at: 0 },
};

function firstLimit({ loads, endpoints, playing }: Observed, refusals: number): number | null {
  if (loads.length > 0) return Math.max(START * endpoints, playing);
  return refusals > 0 ? Math.max(1, playing) : null;
}

const sumsOf = (loads: readonly EndpointLoad[]) => ({
  running: loads.reduce((sum, load) => sum + load.running, 0),
  waiting: loads.reduce((sum, load) => sum + load.waiting, 0),
});

type Overload = { factor: number; reason: string };

function signalsOf(state: AdmissionState, loads: readonly EndpointLoad[], refusals: number) {
  const { running, waiting } = sumsOf(loads);
  const usage = Math.max(0, ...loads.map(({ kv_usage }) => kv_usage));
  const preempted = loads.reduce((sum, load) => sum + newPreemptions(state, load), 0);
  const isQueued = running > 0 && waiting > QUEUE_RATIO * running;
  const queuePolls = isQueued ? state.queue_polls + 1 : 0;
  const share = `${Math.round(100 * usage)} %`;
  const overloads: (Overload | false)[] = [
    preempted > 0 && { factor: OVERLOAD_FALL, reason: `${preempted} requests were preempted` },
    refusals > 0 && { factor: OVERLOAD_FALL, reason: `${refusals} answers had status 429 or 503` },
    usage > FALL_ABOVE && { factor: TARGET_USAGE / usage, reason: `the KV cache is ${share} full` },
    queuePolls >= QUEUE_POLLS && {
      ...{ factor: QUEUE_FALL, reason: `${waiting} requests wait and ${running} run` },
    },
  ];
  return {
    overload: overloads.find((one) => one !== false) || null,
    queuePolls,
    hasRoom: usage < GROW_BELOW && waiting === 0,
  };
}

/** Returns 0 when the server was restarted, or is new. */
function newPreemptions({ endpoints }: AdmissionState, { endpoint, preemptions }: EndpointLoad): number {
  const before = endpoints.find((one) => one.endpoint === endpoint);
  return before ? Math.max(0, preemptions - before.preemptions) : 0;
}

function fallen(
  state: AdmissionState & { limit: number },
  { playing, endpoints }: Observed,
  { factor, reason }: Overload,
): AdmissionState {
  const limit = Math.max(endpoints, Math.min(state.limit, playing) * factor);
  return { ...state, limit, threshold: limit, wait_polls: DRAIN_POLLS, queue_polls: 0, reason };
}

/** Returns a limit that is at most the number of rollouts of the pool, so that it does not grow unused. */
function grown(
  { threshold }: AdmissionState,
  limit: number,
  { playing, waiting, endpoints }: Observed,
): number {
  const isStarting = threshold === null || limit < threshold;
  const next = isStarting
    ? Math.min(limit * GROWTH_FACTOR, Math.max(threshold ?? Number.POSITIVE_INFINITY, limit))
    : limit + GROWTH * endpoints;
  return Math.max(limit, Math.min(next, playing + waiting));
}
