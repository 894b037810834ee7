/**
 * What trainers say of the policies that rollouts here follow: one read a second for all of them, and none without.
 * Redis being away changes nothing: what was said last holds.
 */
import {
  DEFAULT_POLICY,
  errorMessage,
  type Farm,
  followsPolicy,
  type PolicyConfig,
  type PolicyRecord,
} from '@swefarm/shared';
import type { Pause } from '../pause.ts';
import type { Endpoints } from './endpoints.ts';

export type FollowedPolicy = Disposable & {
  readonly pause: Pause;
  /** Null when no trainer spoke of this run's policy. */
  record(): PolicyRecord | null;
  /** Reads it now: a broken answer may be the first sign of an update. */
  refresh(): Promise<void>;
};

export type PolicyWatch = Disposable & {
  /** Follows the policy that the run names; without a name `default`, if the two share an endpoint or it names none. */
  follow(config: Pick<PolicyConfig, 'name' | 'urls'>): Promise<FollowedPolicy>;
};

export type WatchDeps = {
  farm: Pick<Farm, 'policies'>;
  worker: string;
  endpoints: Endpoints;
  log: { warn(fields: Record<string, unknown>, message: string): void };
  intervalMs?: number;
};

type Follower = { name: string; hear(record: PolicyRecord | null): void };

export function watchPolicies(deps: WatchDeps): PolicyWatch {
  const { farm, log } = deps;
  const followers = new Set<Follower>();
  let away = false;

  const read = async (wanted?: string): Promise<void> => {
    const names = wanted === undefined ? [...new Set([...followers].map(({ name }) => name))] : [wanted];
    try {
      const records = new Map((await farm.policies.get(names)).map((record) => [record.name, record]));
      for (const follower of followers) {
        if (names.includes(follower.name)) follower.hear(records.get(follower.name) ?? null);
      }
      away = false;
    } catch (error) {
      if (!away) log.warn({ err: errorMessage(error) }, 'what trainers say of policies cannot be read');
      away = true;
    }
  };
  let busy = false;
  let reported = false;
  const tick = async (): Promise<void> => {
    if (busy || (followers.size === 0 && !reported)) return;
    busy = true;
    await read();
    if (!away) reported = await exchange(deps).catch(() => reported);
    busy = false;
  };
  const timer = setInterval(() => void tick(), deps.intervalMs ?? 1000);
  timer.unref();

  return {
    async follow(config) {
      const name = config.name ?? DEFAULT_POLICY;
      const [followed, hear] = openFollowed((record) => followsPolicy(config, record));
      const follower = { name, hear };
      followers.add(follower);
      await read(name);
      return {
        ...followed,
        refresh: () => read(name),
        [Symbol.dispose]: () => void followers.delete(follower),
      };
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

function openFollowed(
  applies: (record: PolicyRecord) => boolean,
): [followed: Pick<FollowedPolicy, 'pause' | 'record'>, hear: Follower['hear']] {
  let record: PolicyRecord | null = null;
  let pausedAt: number | null = null;
  let pausedMs = 0;
  const listeners = new Set<() => void>();
  const hear = (heard: PolicyRecord | null) => {
    record = heard && applies(heard) ? heard : null;
    const paused = record !== null && record.state !== 'serving';
    if (paused === (pausedAt !== null)) return;
    if (pausedAt !== null) pausedMs += performance.now() - pausedAt;
    pausedAt = paused ? performance.now() : null;
    for (const listener of [...listeners]) listener();
  };
  const pause: Pause = {
    get paused() {
      return pausedAt !== null;
    },
    seconds: () => (pausedMs + (pausedAt === null ? 0 : performance.now() - pausedAt)) / 1000,
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
  return [{ pause, record: () => record }, hear];
}

/** Tells the farm what this worker sees of its endpoints, and learns what others have bound. True while there is something. */
async function exchange({ farm, worker, endpoints }: WatchDeps): Promise<boolean> {
  const views = endpoints.views();
  endpoints.setOthers(await farm.policies.report(worker, views));
  return views.length > 0;
}
