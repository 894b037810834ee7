/**
 * Follows the records that trainers publish about the policies of this worker's rollouts, with one read per second for all rollouts. While
 * Redis is unavailable, the last record remains valid.
 */
import {
  DEFAULT_POLICY,
  errorMessage,
  type Farm,
  followsPolicy,
  type PolicyConfig,
  type PolicyRecord,
} from '@swefarm/shared';
import { createPause, type Pause } from '../deadline.ts';
import type { Endpoints } from './endpoints.ts';

export type FollowedPolicy = Disposable & {
  /** Lasts while the policy does not serve. All clocks stop in this pause. */
  readonly pause: Pause;
  /** Lasts while the worker must not send requests: in the states `updating` and `asleep`. */
  readonly stopped: Pause;
  /** Returns null if no trainer has registered the policy of this run. */
  record(): PolicyRecord | null;
  /** Calls the listener after each read of the record. Returns a function that unsubscribes it. */
  onRead(listener: () => void): () => void;
  /** Reads the record now, because an interrupted answer may be the first sign of a weight update. */
  refresh(): Promise<void>;
};

type WatchDeps = {
  farm: Pick<Farm, 'policies'>;
  worker: string;
  endpoints: Endpoints;
  log: { warn(fields: Record<string, unknown>, message: string): void };
  intervalMs?: number;
};

export type PolicyWatch = ReturnType<typeof watchPolicies>;

export function watchPolicies({ farm, worker, endpoints, log, intervalMs = 1000 }: WatchDeps) {
  const followers = new Set<ReturnType<typeof followerOf>>();
  let away = false;

  const read = async (wanted?: string): Promise<void> => {
    const names = wanted === undefined ? [...new Set([...followers].map(({ name }) => name))] : [wanted];
    try {
      const records = new Map((await farm.policies.get(names)).map((record) => [record.name, record]));
      for (const follower of followers) {
        if (names.includes(follower.name)) follower.onRecord(records.get(follower.name) ?? null);
      }
      away = false;
    } catch (error) {
      if (!away) log.warn({ err: errorMessage(error) }, 'policy records cannot be read');
      away = true;
    }
  };
  let busy = false;
  let reported = false;
  /** Reports this worker's load on its endpoints and reads the loads of other workers. */
  const exchangeLoads = async (): Promise<void> => {
    const views = endpoints.views();
    endpoints.setOthers(await farm.policies.report(worker, views));
    reported = views.length > 0;
  };
  const tick = async (): Promise<void> => {
    if (busy || (followers.size === 0 && !reported)) return;
    busy = true;
    await read();
    if (!away) await exchangeLoads().catch(() => undefined);
    busy = false;
  };
  const timer = setInterval(() => void tick(), intervalMs);
  timer.unref();

  return {
    /** Follows the policy that the run names. Without a name, follows `default` if it shares an endpoint with the run or names none. */
    async follow(config: Followable): Promise<FollowedPolicy> {
      const follower = followerOf(config);
      followers.add(follower);
      const refresh = () => read(follower.name);
      await refresh();
      return { ...follower, refresh, [Symbol.dispose]: () => void followers.delete(follower) };
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

type Followable = Pick<PolicyConfig, 'name' | 'urls'>;

function followerOf(config: Followable) {
  let record: PolicyRecord | null = null;
  const { pause, set: setPaused } = createPause();
  const { pause: stopped, set: setStopped } = createPause();
  const listeners = new Set<() => void>();
  const onRecord = (latest: PolicyRecord | null) => {
    record = latest && followsPolicy(config, latest) ? latest : null;
    const state = record?.state ?? 'serving';
    setPaused('record', state !== 'serving');
    setStopped('record', state === 'updating' || state === 'asleep');
    for (const listener of [...listeners]) listener();
  };
  const onRead = (listener: () => void) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };
  return { name: config.name ?? DEFAULT_POLICY, pause, stopped, record: () => record, onRecord, onRead };
}
