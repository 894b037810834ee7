/** A rollout whose first turn had weights that are too old by now is of no use to its trainer: it is cancelled while it runs, is graded or is committed. */
import {
  DEFAULT_POLICY,
  followsPolicy,
  type Policies,
  type PolicyRecord,
  type RunRecord,
  type Trajectory,
  versionsBehind,
} from '@swefarm/shared';

type Known = Pick<PolicyRecord, 'versions'> | null;

/** The oldest weights that are known to have made a turn of it. */
const firstVersion = (trajectory: Trajectory | null): string | null =>
  trajectory?.turns.find(({ policy_version: { start } }) => start !== null)?.policy_version.start ?? null;

/** What a result tells of the weights: its turns name each. */
export const versionsOf = (trajectory: Trajectory) => ({
  policy_version_first: firstVersion(trajectory),
  policy_version_last:
    trajectory.turns.findLast(({ policy_version: { end } }) => end !== null)?.policy_version.end ?? null,
});

function tooOld(most: number | null, trajectory: Trajectory | null, policy: Known): boolean {
  if (most === null || policy === null) return false;
  const behind = versionsBehind(policy, firstVersion(trajectory));
  return behind !== null && behind > most;
}

type StaleDeps = {
  /** Most versions that the policy may be ahead of the first turn; null: any number. */
  most: number | null;
  trajectory(): Trajectory | null;
  /** The policy's record by its trainer; null: there is none. */
  policy(): Known;
  onStale(): void;
};

export type Staleness = Disposable & {
  /** Looks now: before a turn, so that none is asked for in vain. */
  look(): void;
};

/** How often it looks by itself: a turn, or an evaluation, may last for minutes. */
const EVERY_MS = 1_000;

export function watchStaleness(deps: StaleDeps, everyMs: number = EVERY_MS): Staleness {
  const look = (): void => {
    if (tooOld(deps.most, deps.trajectory(), deps.policy())) deps.onStale();
  };
  const timer = deps.most === null ? null : setInterval(look, everyMs);
  return {
    look,
    [Symbol.dispose]: () => {
      if (timer) clearInterval(timer);
    },
  };
}

/** Asks Redis, which may know of newer weights than this worker. */
export async function isStale(
  { max_staleness: most, policy }: Pick<RunRecord, 'max_staleness' | 'policy'>,
  trajectory: Trajectory | null,
  policies: Pick<Policies, 'get'>,
): Promise<boolean> {
  if (most === null || policy === null || firstVersion(trajectory) === null) return false;
  const [record] = await policies.get([policy.name ?? DEFAULT_POLICY]);
  return record !== undefined && followsPolicy(policy, record) && tooOld(most, trajectory, record);
}
