/** The endpoint binding of a rollout: one endpoint until the trainer withdraws it or it fails during a turn. */
import type { PolicyConfig } from '@swefarm/shared';
import type { BoundEndpoint, Endpoints } from './endpoints.ts';
import type { FollowedPolicy } from './watch.ts';

export type EndpointBinding = Disposable & {
  readonly url: string;
  /** Moves to another endpoint when the policy no longer names the bound one. */
  rebind(): void;
  /** Moves to another endpoint that is neither set aside nor in `left`. Returns false when there is none. */
  move(left: ReadonlySet<string>): boolean;
};

/** Throws RolloutFailure `policy_bad_request` when neither the run nor its policy names an endpoint. */
export function bindEndpoint(
  config: PolicyConfig,
  { followed, endpoints, key }: { followed: FollowedPolicy; endpoints: Endpoints; key: string },
): EndpointBinding {
  const known = (): readonly string[] => {
    const own = followed.record()?.endpoints ?? [];
    return own.length > 0 ? own : config.urls;
  };
  let bound: BoundEndpoint = endpoints.bind(known(), key);
  const bindTo = (next: BoundEndpoint): void => {
    bound[Symbol.dispose]();
    bound = next;
  };
  return {
    get url() {
      return bound.url;
    },
    rebind() {
      if (!known().includes(bound.url)) bindTo(endpoints.bind(known(), key));
    },
    move(left) {
      const others = known().filter((url) => url !== bound.url && !left.has(url));
      const next = endpoints.bindInUse(others, key);
      if (next === null) return false;
      bindTo(next);
      return true;
    },
    [Symbol.dispose]: () => bound[Symbol.dispose](),
  };
}
