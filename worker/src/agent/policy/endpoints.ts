/**
 * The endpoints that this worker uses, with load and failures. An endpoint that failed is set aside: it gets no new bindings for a time. A
 * rollout stays on one endpoint, so that the prefix cache of that endpoint serves all turns.
 */
import { createHash } from 'node:crypto';
import { type EndpointView, RolloutFailure } from '@swefarm/shared';

export type BoundEndpoint = Disposable & { readonly url: string };

export type Endpoints = {
  /**
   * Binds to the least loaded endpoint that is not set aside; if all are, to the endpoint whose time ends first.
   * `key` breaks ties, so that rollouts spread. Throws RolloutFailure `policy_bad_request` when `urls` is empty.
   */
  bind(urls: readonly string[], key: string): BoundEndpoint;
  /** Binds as `bind` does, but returns null when all endpoints are set aside. */
  bindInUse(urls: readonly string[], key: string): BoundEndpoint | null;
  /** Sets the endpoint aside for 1 s, then twice as long after each further failure, at most one minute. An answer resets the time. */
  failed(url: string, reason: string): void;
  answered(url: string): void;
  setOthers(loads: ReadonlyMap<string, number>): void;
  views(): EndpointView[];
};

const LONGEST_ASIDE_SECONDS = 60;

type Endpoint = { load: number; failures: number; asideUntil: number; reason: string | null };
type State = { endpoints: Map<string, Endpoint>; others: ReadonlyMap<string, number>; now: () => number };

/** @param now returns milliseconds; tests replace it */
export function openEndpoints(now: () => number = () => performance.now()): Endpoints {
  const state: State = { endpoints: new Map(), others: new Map(), now };
  const { endpoints } = state;
  return {
    bind(urls, key) {
      const chosen = bestOf(state, urls, key);
      if (!chosen)
        throw new RolloutFailure('policy_bad_request', 'neither the run nor its policy names an endpoint');
      return bindTo(state, chosen.url);
    },
    bindInUse(urls, key) {
      const chosen = bestOf(state, urls, key);
      return chosen && chosen.rank[0] === 0 ? bindTo(state, chosen.url) : null;
    },
    failed(url, reason) {
      const endpoint = endpointAt(state, url);
      // Requests that ran when the endpoint was set aside fail too. All these failures count as one.
      if (endpoint.asideUntil > now()) return;
      endpoint.failures++;
      endpoint.asideUntil = now() + 1000 * Math.min(LONGEST_ASIDE_SECONDS, 2 ** (endpoint.failures - 1));
      endpoint.reason = reason.slice(0, 200);
    },
    answered(url) {
      const endpoint = endpoints.get(url);
      if (endpoint) Object.assign(endpoint, { failures: 0, asideUntil: 0, reason: null });
    },
    setOthers(loads) {
      state.others = loads;
    },
    views: () =>
      [...endpoints].map(([url, { load, asideUntil, reason }]) => ({
        url,
        load,
        aside_seconds: Math.max(0, (asideUntil - now()) / 1000),
        reason,
      })),
  };
}

function endpointAt({ endpoints }: State, url: string): Endpoint {
  const endpoint = endpoints.get(url) ?? { load: 0, failures: 0, asideUntil: 0, reason: null };
  endpoints.set(url, endpoint);
  return endpoint;
}

function bestOf({ endpoints, others, now }: State, urls: readonly string[], key: string) {
  const rankOf = (url: string): [number, number, number] => [
    Math.max(0, (endpoints.get(url)?.asideUntil ?? 0) - now()),
    (endpoints.get(url)?.load ?? 0) + (others.get(url) ?? 0),
    createHash('sha256').update(`${key} ${url}`).digest().readUInt32BE(),
  ];
  return urls.map((url) => ({ url, rank: rankOf(url) })).sort((a, b) => compare(a.rank, b.rank))[0];
}

function bindTo(state: State, url: string): BoundEndpoint {
  const endpoint = endpointAt(state, url);
  endpoint.load++;
  let bound = true;
  return {
    url,
    [Symbol.dispose]() {
      if (bound) endpoint.load--;
      bound = false;
      if (endpoint.load === 0 && endpoint.failures === 0) state.endpoints.delete(url);
    },
  };
}

function compare(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((value, index) => value !== b[index]);
  return at === -1 ? 0 : (a[at] ?? 0) - (b[at] ?? 0);
}
