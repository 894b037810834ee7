/** One rollout settled as a worker does it, without anything run. */
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

/** Nobody answered, and no tokens. */
const NO_ANSWERS: Trajectory = {
  format: 'swefarm-trajectory-1',
  token_mode: null,
  model: null,
  endpoint: null,
  messages: [{ role: 'user', content: 'Fix it.\u001b[31m' }],
  turns: [],
  exit_status: 'submitted',
};

/** Claims and commits one rollout as a worker does: artifact first, then the one commit. */
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
