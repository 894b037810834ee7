/** Where a rollout is bound: one endpoint, unless the trainer takes that one away or it fails in the middle of a turn. */
import type { PolicyConfig } from '@swefarm/shared';
import type { BoundEndpoint, Endpoints } from './endpoints.ts';
import type { FollowedPolicy } from './watch.ts';

export type EndpointBinding = Disposable & {
  readonly url: string;
  /** Leaves an endpoint that the policy no longer names. */
  rebind(): void;
  /** Goes to another endpoint that is in use and none of these; false when there is none. */
  move(left: ReadonlySet<string>): boolean;
};

/** Throws RolloutFailure `policy_bad_request` when neither run nor policy names an endpoint. */
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
