/** Where a rollout is bound: one endpoint, unless the trainer takes that one away or it fails in the middle of a turn. */
import type { PolicyConfig } from '@swefarm/shared';
import type { Endpoints, Held } from './endpoints.ts';
import type { Followed } from './watch.ts';

export type Place = Disposable & {
  readonly url: string;
  /** Leaves an endpoint that the policy no longer names. */
  settle(): void;
  /** Goes to another endpoint that is in use and none of these; false when there is none. */
  move(left: ReadonlySet<string>): boolean;
};

/** Throws RolloutFailure `policy_bad_request` when neither run nor policy names an endpoint. */
export function openPlace(
  config: PolicyConfig,
  { followed, endpoints, key }: { followed: Followed; endpoints: Endpoints; key: string },
): Place {
  const known = (): readonly string[] => {
    const own = followed.record()?.endpoints ?? [];
    return own.length > 0 ? own : config.urls;
  };
  let held: Held = endpoints.bind(known(), key);
  const change = (next: Held): void => {
    held[Symbol.dispose]();
    held = next;
  };
  return {
    get url() {
      return held.url;
    },
    settle() {
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
