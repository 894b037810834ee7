/** Cancels a rollout whose first turn used weights that are now too old for the trainer. */
import {
  allTurns,
  DEFAULT_POLICY,
  followsPolicy,
  type Policies,
  type PolicyRecord,
  type RunRecord,
  type Trajectory,
  versionsBehind,
} from '@swefarm/shared';

type Known = Pick<PolicyRecord, 'versions'> | null;

const firstVersion = (trajectory: Trajectory | null): string | null =>
  (trajectory ? allTurns(trajectory) : []).find(({ policy_version: { start } }) => start !== null)
    ?.policy_version.start ?? null;

/** Returns the version fields of a result, read from the turns. */
export const versionsOf = (trajectory: Trajectory) => ({
  policy_version_first: firstVersion(trajectory),
  policy_version_last:
    allTurns(trajectory).findLast(({ policy_version: { end } }) => end !== null)?.policy_version.end ?? null,
});

function tooOld(most: number | null, trajectory: Trajectory | null, policy: Known): boolean {
  if (most === null || policy === null) return false;
  const behind = versionsBehind(policy, firstVersion(trajectory));
  return behind !== null && behind > most;
}

type StaleDeps = {
  /** Maximum number of versions that the policy may be ahead of the first turn; null: any number. */
  most: number | null;
  trajectory(): Trajectory | null;
  policy(): Known;
  onStale(): void;
};

export type Staleness = ReturnType<typeof watchStaleness>;

const EVERY_MS = 1_000;

export function watchStaleness(deps: StaleDeps, everyMs: number = EVERY_MS) {
  /** Checks at once, in addition to the timer. Called before each turn. */
  const check = (): void => {
    if (tooOld(deps.most, deps.trajectory(), deps.policy())) deps.onStale();
  };
  const timer = deps.most === null ? null : setInterval(check, everyMs);
  return {
    check,
    [Symbol.dispose]: () => clearInterval(timer ?? undefined),
  };
}

/** Returns whether the rollout is too old by the policy's record in Redis, which may be newer than the record that this worker knows. */
export async function isStale(
  { max_staleness: most, policy }: Pick<RunRecord, 'max_staleness' | 'policy'>,
  trajectory: Trajectory | null,
  policies: Pick<Policies, 'get'>,
): Promise<boolean> {
  if (most === null || policy === null || firstVersion(trajectory) === null) return false;
  const [record] = await policies.get([policy.name ?? DEFAULT_POLICY]);
  return record !== undefined && followsPolicy(policy, record) && tooOld(most, trajectory, record);
}
