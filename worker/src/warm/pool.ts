/**
 * Sandboxes that wait ready for rollouts that are next in the queue. Each is handed over once, to a rollout whose own sandbox would be
 * made of exactly the same; a rollout that finds none starts its own. Which to make is decided in `node/warming.ts`.
 */

import type { CleanPlans, Owner, Removals, Runtime } from '@swefarm/sandbox';
import { type PreparedSandbox, planKey, prepareSandbox, type SandboxPlan } from '@swefarm/sandbox';
import { errorMessage, newId } from '@swefarm/shared';
import type { Logger } from 'pino';
import type { WorkerMetrics } from '../metrics/workermetrics.ts';

const REASONS = ['unwanted', 'paused', 'dead', 'old', 'ended'] as const;
/** Why a sandbox that waited was removed. `paused`: the worker claims nothing. `old`: it waited too long. */
type DiscardReason = (typeof REASONS)[number];

/** How long a sandbox may wait without a rollout in the queue that would take it: another rollout of its kind may be queued next. */
const UNWANTED_MS = 5_000;
/** What runs in it is idle, but the longer it waits the more of the node may have changed around it. */
const OLDEST_MS = 10 * 60_000;
/** A plan whose sandbox could not be made is left alone for this long. The rollout that starts its own meets and reports the reason. */
const FAILED_MS = 60_000;

export type WarmPool = {
  /** The most that may wait; 0: none is ever made. */
  readonly most: number;
  /** A sandbox that waited and still runs; null: there is none. The caller owns it, and disposes of it. Throws the signal's reason. */
  take(plan: SandboxPlan, signal: AbortSignal): Promise<PreparedSandbox | null>;
  /** The first of the plans for which too few wait; null: none, or one is being made. */
  lacks(plans: readonly SandboxPlan[]): SandboxPlan | null;
  /** Makes one, unless the pool is closed. Never throws. */
  make(plan: SandboxPlan): Promise<void>;
  /** Removes those that none of the plans would take, that have ended, or that have waited too long. Never throws. */
  tidy(plans: readonly SandboxPlan[]): Promise<void>;
  /** Removes all that wait, and ends the making of one, until {@link open}. */
  close(reason: DiscardReason): void;
  open(): void;
  /** Sandboxes that wait, are being made, or were handed over and still exist, by the names of their owner. */
  list(): { rollout_id: string; attempt: number }[];
};

export type WarmPoolDeps = {
  most: number;
  runtime: Pick<Runtime, 'start'>;
  owner: Omit<Owner, 'rollout_id' | 'attempt'>;
  cleanPlans: CleanPlans;
  removals: Removals;
  metrics: Pick<WorkerMetrics, 'warmWaiting' | 'warmAsked' | 'warmDiscarded'>;
  log: Logger;
  /** Monotonic milliseconds; a parameter for tests. */
  now?: () => number;
};

type Waiting = { key: string; name: string; sandbox: PreparedSandbox; madeAt: number; wantedAt: number };

type State = WarmPoolDeps & {
  now: () => number;
  waiting: Waiting[];
  /** Owners' names of all that exist. */
  names: Set<string>;
  making: AbortController | null;
  closed: boolean;
  failed: Map<string, number>;
};

export function createWarmPool(deps: WarmPoolDeps): WarmPool {
  const state: State = {
    ...deps,
    now: deps.now ?? (() => performance.now()),
    waiting: [],
    names: new Set(),
    making: null,
    closed: false,
    failed: new Map(),
  };
  // A counter that first appears with its first event shows no increase.
  for (const found of ['hit', 'miss']) deps.metrics.warmAsked.inc({ found }, 0);
  for (const reason of REASONS) deps.metrics.warmDiscarded.inc({ reason }, 0);
  return {
    most: deps.most,
    take: (plan, signal) => takeReady(state, plan, signal),
    lacks: (plans) => lackingIn(state, plans),
    make: (plan) => makeOne(state, plan),
    tidy: (plans) => tidyUp(state, plans),
    close(reason) {
      state.closed = true;
      state.making?.abort();
      for (const one of state.waiting.splice(0)) discard(state, one, reason);
    },
    open() {
      state.closed = false;
    },
    list: () => [...state.names].map((rollout_id) => ({ rollout_id, attempt: 0 })),
  };
}

async function takeReady(
  state: State,
  plan: SandboxPlan,
  signal: AbortSignal,
): Promise<PreparedSandbox | null> {
  if (state.most === 0) return null;
  const key = planKey(plan);
  for (;;) {
    const at = state.waiting.findIndex((one) => one.key === key);
    // Taken out before anything is awaited, so that nobody else gets it.
    const [one] = at < 0 ? [] : state.waiting.splice(at, 1);
    if (!one) {
      state.metrics.warmAsked.inc({ found: 'miss' });
      return null;
    }
    state.metrics.warmWaiting.set(state.waiting.length);
    const runs = await isRunning(one);
    if (signal.aborted) {
      discard(state, one, 'ended');
      signal.throwIfAborted();
    }
    if (runs) {
      state.metrics.warmAsked.inc({ found: 'hit' });
      return one.sandbox;
    }
    discard(state, one, 'dead');
  }
}

/** False too where its engine does not answer: a rollout that starts its own sandbox finds out what is wrong. */
const isRunning = async ({ sandbox }: Waiting): Promise<boolean> =>
  (await sandbox.container.state().catch(() => null)) === 'running';

function lackingIn(state: State, plans: readonly SandboxPlan[]): SandboxPlan | null {
  const { closed, making, waiting, most, failed, now } = state;
  if (closed || making || waiting.length >= most) return null;
  const left = waiting.map(({ key }) => key);
  for (const plan of plans.slice(0, most)) {
    const key = planKey(plan);
    const at = left.indexOf(key);
    if (at >= 0) left.splice(at, 1);
    else if (now() - (failed.get(key) ?? Number.NEGATIVE_INFINITY) >= FAILED_MS) return plan;
  }
  return null;
}

async function makeOne(state: State, plan: SandboxPlan): Promise<void> {
  if (state.closed || state.making) return;
  const making = new AbortController();
  state.making = making;
  const name = `warm-${newId()}`;
  const key = planKey(plan);
  state.names.add(name);
  try {
    const sandbox = named(state, name, await prepare(state, plan, name, making.signal));
    const one = { key, name, sandbox, madeAt: state.now(), wantedAt: state.now() };
    state.waiting.push(one);
    state.metrics.warmWaiting.set(state.waiting.length);
    // Closed after its last wait for anything.
    if (state.closed) for (const late of state.waiting.splice(0)) discard(state, late, 'ended');
  } catch (error) {
    state.names.delete(name);
    if (making.signal.aborted) return;
    state.failed.set(key, state.now());
    state.log.info(
      { image: plan.spec.image.name, err: errorMessage(error) },
      'no sandbox could be made ahead',
    );
  } finally {
    state.making = null;
  }
}

/** With its history removed: its first command has nothing to wait for. */
async function prepare(
  state: State,
  plan: SandboxPlan,
  name: string,
  signal: AbortSignal,
): Promise<PreparedSandbox> {
  const { runtime, cleanPlans, log } = state;
  const owner = { ...state.owner, rollout_id: name, attempt: 0 };
  const sandbox = await prepareSandbox(plan, { runtime, owner, cleanPlans, log, signal });
  try {
    await sandbox.pruned;
    signal.throwIfAborted();
    return sandbox;
  } catch (error) {
    await state.removals.remove(sandbox);
    throw error;
  }
}

/** Its owner's name is known until its removal begins, whoever has it by then. */
function named(state: State, name: string, sandbox: PreparedSandbox): PreparedSandbox {
  return {
    ...sandbox,
    async [Symbol.asyncDispose]() {
      state.names.delete(name);
      await sandbox[Symbol.asyncDispose]();
    },
  };
}

async function tidyUp(state: State, plans: readonly SandboxPlan[]): Promise<void> {
  const now = state.now();
  const wanted = plans.map(planKey);
  for (const [key, at] of state.failed) if (now - at >= FAILED_MS) state.failed.delete(key);
  for (const one of [...state.waiting]) {
    const at = wanted.indexOf(one.key);
    if (at >= 0) {
      wanted.splice(at, 1);
      one.wantedAt = now;
    }
    if (now - one.wantedAt >= UNWANTED_MS) drop(state, one, 'unwanted');
    else if (now - one.madeAt >= OLDEST_MS) drop(state, one, 'old');
    else if (!(await isRunning(one))) drop(state, one, 'dead');
  }
}

/** Unless a rollout has it by now. */
function drop(state: State, one: Waiting, reason: DiscardReason): void {
  const at = state.waiting.indexOf(one);
  if (at < 0) return;
  state.waiting.splice(at, 1);
  discard(state, one, reason);
}

function discard(state: State, { sandbox, name }: Waiting, reason: DiscardReason): void {
  state.metrics.warmWaiting.set(state.waiting.length);
  state.metrics.warmDiscarded.inc({ reason });
  state.log.debug({ sandbox: sandbox.container.id, name, reason }, 'a warm sandbox is removed');
  void state.removals.remove(sandbox);
}
