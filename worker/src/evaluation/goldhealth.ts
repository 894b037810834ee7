/** Finds the registry's finding about gold that was measured with the same image, grader and network. */
import type { Instance, RewardFacts } from '@swefarm/shared';

type Conditions = {
  imageDigest: string;
  grader: string;
  network: 'none' | 'egress';
  timeoutSeconds: number;
};

/** Returns nulls when no finding applies. */
export function goldHealthOf(
  instance: Pick<Instance, 'health'>,
  here: Conditions,
): Pick<RewardFacts, 'gold_healthy' | 'gold_time_share'> {
  const known = instance.health?.find(
    (one) =>
      one.image_digest === here.imageDigest && one.grader === here.grader && one.network === here.network,
  );
  if (!known) return { gold_healthy: null, gold_time_share: null };
  return {
    gold_healthy: known.gold_resolves,
    gold_time_share: known.gold_resolves ? known.gold_seconds / here.timeoutSeconds : null,
  };
}
