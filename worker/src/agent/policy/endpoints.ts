/**
 * The endpoints that this worker uses: how many rollouts are bound to each, which one failed and when it is tried again.
 * A rollout stays on one endpoint, whose prefix cache then serves all its turns.
 */
import { createHash } from 'node:crypto';
import { type EndpointView, RolloutFailure } from '@swefarm/shared';

export type BoundEndpoint = Disposable & { readonly url: string };

export type Endpoints = {
  /**
   * Binds to the least loaded endpoint that is in use; when all are set aside, to the one that is tried again first.
   * `key` breaks ties, so that rollouts spread. Throws RolloutFailure `policy_bad_request` when there is none.
   */
  bind(urls: readonly string[], key: string): BoundEndpoint;
  /** As bind(), among those that are not set aside; null when all are. */
  bindInUse(urls: readonly string[], key: string): BoundEndpoint | null;
  /** Sets it aside for 1 s, and for twice as long each time until it answers, a minute at the most. */
  failed(url: string, reason: string): void;
  answered(url: string): void;
  /** Rollouts that other workers have bound, by endpoint. */
  setOthers(loads: ReadonlyMap<string, number>): void;
  views(): EndpointView[];
};

const LONGEST_ASIDE_SECONDS = 60;

type Known = { load: number; failures: number; asideUntil: number; reason: string | null };

/** `now` in milliseconds, for tests. */
export function openEndpoints(now: () => number = () => performance.now()): Endpoints {
  const known = new Map<string, Known>();
  let others: ReadonlyMap<string, number> = new Map();
  const of = (url: string): Known => {
    const entry = known.get(url) ?? { load: 0, failures: 0, asideUntil: 0, reason: null };
    known.set(url, entry);
    return entry;
  };
  /** Least first: in use before set aside, then by load, then by lot. */
  const rank = (url: string, key: string): [number, number, number] => [
    Math.max(0, (known.get(url)?.asideUntil ?? 0) - now()),
    (known.get(url)?.load ?? 0) + (others.get(url) ?? 0),
    createHash('sha256').update(`${key} ${url}`).digest().readUInt32BE(),
  ];
  const best = (urls: readonly string[], key: string) =>
    urls.map((url) => ({ url, rank: rank(url, key) })).sort((a, b) => compare(a.rank, b.rank))[0];
  const bindTo = (url: string): BoundEndpoint => {
    const entry = of(url);
    entry.load++;
    let held = true;
    return {
      url,
      [Symbol.dispose]() {
        if (held) entry.load--;
        held = false;
        if (entry.load === 0 && entry.failures === 0) known.delete(url);
      },
    };
  };
  return {
    bind(urls, key) {
      const chosen = best(urls, key);
      if (!chosen)
        throw new RolloutFailure('policy_bad_request', 'neither the run nor its policy names an endpoint');
      return bindTo(chosen.url);
    },
    bindInUse(urls, key) {
      const chosen = best(urls, key);
      return chosen && chosen.rank[0] === 0 ? bindTo(chosen.url) : null;
    },
    failed(url, reason) {
      const entry = of(url);
      // Rollouts that were under way when it was set aside fail too: that is one failure, not many.
      if (entry.asideUntil > now()) return;
      entry.failures++;
      entry.asideUntil = now() + 1000 * Math.min(LONGEST_ASIDE_SECONDS, 2 ** (entry.failures - 1));
      entry.reason = reason.slice(0, 200);
    },
    answered(url) {
      const entry = known.get(url);
      if (entry) Object.assign(entry, { failures: 0, asideUntil: 0, reason: null });
    },
    setOthers(loads) {
      others = loads;
    },
    views: () =>
      [...known].map(([url, { load, asideUntil, reason }]) => ({
        url,
        load,
        aside_seconds: Math.max(0, (asideUntil - now()) / 1000),
        reason,
      })),
  };
}

function compare(a: readonly number[], b: readonly number[]): number {
  const place = a.findIndex((value, index) => value !== b[index]);
  return place === -1 ? 0 : (a[place] ?? 0) - (b[place] ?? 0);
}
