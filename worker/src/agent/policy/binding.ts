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
  let held: BoundEndpoint = endpoints.bind(known(), key);
  const change = (next: BoundEndpoint): void => {
    held[Symbol.dispose]();
    held = next;
  };
  return {
    get url() {
      return held.url;
    },
    rebind() {
      if (!known().includes(held.url)) change(endpoints.bind(known(), key));
    },
    move(left) {
      const others = known().filter((url) => url !== held.url && !left.has(url));
      const next = endpoints.bindInUse(others, key);
      if (next === null) return false;
      change(next);
      return true;
    },
    [Symbol.dispose]: () => held[Symbol.dispose](),
  };
}
