/** Commits rollouts for tests as a worker does, without running them. */
import {
  effectiveSampling,
  encodeArtifact,
  type Farm,
  parseRolloutId,
  type Report,
  type Result,
  type RunRecord,
  type Trajectory,
} from '@swefarm/shared';
import { bareArtifact, bareTrajectory } from '@swefarm/testkit';
import { aResult } from './result.ts';

/** A trajectory without turns. */
const NO_ANSWERS = bareTrajectory({
  ...{ token_mode: null, model: null, messages: [{ role: 'user', content: 'Fix it.\u001b[31m' }] },
});

/** Claims a rollout, stores its artifact, and commits its result; does nothing if the claim is refused. */
export async function commitRollout(
  farm: Farm,
  record: RunRecord,
  rolloutId: string,
  over: Partial<Result> = {},
  report: Report | null = null,
  trajectory: Trajectory = NO_ANSWERS,
): Promise<void> {
  const { instanceId, index } = parseRolloutId(rolloutId);
  const claim = await farm.journal.claim(rolloutId, { worker: 'fake', node: 'here' });
  if (claim.status !== 'claimed') return;
  const sampling = record.policy ? { sampling: effectiveSampling(record.policy) } : {};
  const blob = await encodeArtifact(
    bareArtifact({
      ...{ rollout_id: rolloutId, attempt: claim.attempt, instance_id: instanceId, report },
      ...{ trajectory: { ...trajectory, ...sampling }, patch: `patch of ${rolloutId}` },
    }),
  );
  const artifact = await farm.artifacts.put(rolloutId, claim, blob);
  await farm.commit(
    record,
    aResult({
      run_id: record.run_id,
      rollout_id: rolloutId,
      instance_id: instanceId,
      rollout_index: index,
      attempt: claim.attempt,
      claim: claim.claim,
      artifact,
      ...over,
    }),
  );
  await farm.journal.end(rolloutId, claim.claim, { stage: null, class: 'done', cause: null });
}
