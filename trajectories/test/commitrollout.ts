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
import { aResult } from './result.ts';

/** A trajectory without turns. */
const NO_ANSWERS: Trajectory = {
  format: 'swefarm-trajectory-1',
  token_mode: null,
  model: null,
  endpoint: null,
  messages: [{ role: 'user', content: 'Fix it.\u001b[31m' }],
  turns: [],
  exit_status: 'submitted',
};

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
  const blob = await encodeArtifact({
    format: 'swefarm-artifact-1',
    rollout_id: rolloutId,
    attempt: claim.attempt,
    instance_id: instanceId,
    trajectory: {
      ...trajectory,
      ...(record.policy ? { sampling: effectiveSampling(record.policy) } : {}),
    },
    patch: `patch of ${rolloutId}`,
    report,
    test_log: null,
    eval_script: null,
    failure_detail: null,
  });
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
