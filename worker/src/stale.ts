/** A rollout whose first turn had weights that are too old by now is of no use to its trainer. */
import { type PolicyRecord, type Turn, versionsBehind } from '@swefarm/shared';

type StaleDeps = {
  /** Most versions that the policy may be ahead of the first turn; null: any number. */
  most: number | null;
  first(): Turn | undefined;
  /** What the trainer says of the policy now; null: nothing. */
  policy(): Pick<PolicyRecord, 'versions'> | null;
  onStale(): void;
};

type Staleness = Disposable & {
  /** Looks now: before a turn, so that none is asked for in vain. */
  look(): void;
};

/** How often it looks by itself: a turn may last for minutes. */
const EVERY_MS = 1_000;

export function watchStaleness(deps: StaleDeps, everyMs: number = EVERY_MS): Staleness {
  const look = (): void => {
    const policy = deps.policy();
    const first = deps.first();
    if (deps.most === null || !policy || !first) return;
    const behind = versionsBehind(policy, first.policy_version.start);
    if (behind !== null && behind > deps.most) deps.onStale();
  };
  const timer = deps.most === null ? null : setInterval(look, everyMs);
  return {
    look,
    [Symbol.dispose]: () => {
      if (timer) clearInterval(timer);
    },
  };
}
