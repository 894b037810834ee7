/**
 * The endpoints that this worker uses, with load and failures. An endpoint that failed is set aside: other endpoints are bound first for a
 * time. A rollout stays on its endpoint while that works, so that the prefix cache of the endpoint serves all turns.
 */
import { createHash } from 'node:crypto';
import { type EndpointView, RolloutFailure } from '@swefarm/shared';

const LONGEST_ASIDE_SECONDS = 60;

type BoundEndpoint = Disposable & { readonly url: string };

type Endpoint = { load: number; failures: number; asideUntil: number; reason: string | null };

export class Endpoints {
  readonly #endpoints = new Map<string, Endpoint>();
  readonly #now: () => number;
  #others: ReadonlyMap<string, number> = new Map();

  /** @param now returns milliseconds; tests replace it */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * Binds to the least loaded endpoint that is not set aside; if all are, to the endpoint whose time ends first.
   * `key` breaks ties, so that rollouts spread. Throws RolloutFailure `policy_bad_request` when `urls` is empty.
   */
  bind(urls: readonly string[], key: string): BoundEndpoint {
    const [best] = this.#ranked(urls, key);
    if (!best)
      throw new RolloutFailure('policy_bad_request', 'neither the run nor its policy names an endpoint');
    return this.#bindTo(best.url);
  }

  /** Binds as `bind` does, but returns null when `urls` is empty or all endpoints are set aside. */
  bindInUse(urls: readonly string[], key: string): BoundEndpoint | null {
    const [best] = this.#ranked(urls, key);
    return best?.rank[0] === 0 ? this.#bindTo(best.url) : null;
  }

  /** Sets the endpoint aside for 1 s, then twice as long after each further failure, at most one minute. An answer resets the time. */
  failed(url: string, reason: string): void {
    const endpoint = this.#at(url);
    // Requests that ran when the endpoint was set aside fail too. All these failures count as one.
    if (endpoint.asideUntil > this.#now()) return;
    endpoint.failures++;
    endpoint.asideUntil = this.#now() + 1000 * Math.min(LONGEST_ASIDE_SECONDS, 2 ** (endpoint.failures - 1));
    endpoint.reason = reason.slice(0, 200);
  }

  answered(url: string): void {
    const endpoint = this.#endpoints.get(url);
    if (endpoint) Object.assign(endpoint, { failures: 0, asideUntil: 0, reason: null });
  }

  setOthers(loads: ReadonlyMap<string, number>): void {
    this.#others = loads;
  }

  views(): EndpointView[] {
    return [...this.#endpoints].map(([url, { load, asideUntil, reason }]) => ({
      url,
      load,
      aside_seconds: Math.max(0, (asideUntil - this.#now()) / 1000),
      reason,
    }));
  }

  #at(url: string): Endpoint {
    const endpoint = this.#endpoints.get(url) ?? { load: 0, failures: 0, asideUntil: 0, reason: null };
    this.#endpoints.set(url, endpoint);
    return endpoint;
  }

  /** Returns the endpoints by rank: milliseconds for which each is still set aside, its load, and a hash of the key. */
  #ranked(urls: readonly string[], key: string) {
    const ranked = urls.map((url) => {
      const { asideUntil = 0, load = 0 } = this.#endpoints.get(url) ?? {};
      const aside = Math.max(0, asideUntil - this.#now());
      const tie = createHash('sha256').update(`${key} ${url}`).digest().readUInt32BE();
      return { url, rank: [aside, load + (this.#others.get(url) ?? 0), tie] as const };
    });
    return ranked.sort(({ rank: a }, { rank: b }) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]);
  }

  #bindTo(url: string): BoundEndpoint {
    const endpoint = this.#at(url);
    endpoint.load++;
    let bound = true;
    return {
      url,
      [Symbol.dispose]: () => {
        if (bound) endpoint.load--;
        bound = false;
        if (endpoint.load === 0 && endpoint.failures === 0) this.#endpoints.delete(url);
      },
    };
  }
}
