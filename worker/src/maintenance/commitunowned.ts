/** A result that no worker is there to commit: cancelled while it waited, or parked. It carries no facts, so no reward. */
import {
  type CancelReason,
  type Failure,
  type Farm,
  type JournalEntry,
  newId,
  parseRolloutId,
  type Result,
  type RunRecord,
  softwareVersion,
} from '@swefarm/shared';

/** Who signs what the keeper commits. */
const KEEPER = 'keeper';

export type UnownedEnd = { cancelled: CancelReason } | { failed: Failure };

/** Commits it and takes the job off the queue; true when it is the rollout's result. */
export async function commitUnowned(
  farm: Farm,
  run: RunRecord,
  rolloutId: string,
  journal: readonly JournalEntry[],
  verdict: UnownedEnd,
): Promise<boolean> {
  const { instanceId, index } = parseRolloutId(rolloutId);
  const failure = 'failed' in verdict ? verdict.failed : null;
  const result: Result = {
    format: 'swefarm-result-1',
    run_id: run.run_id,
    rollout_id: rolloutId,
    instance_id: instanceId,
    rollout_index: index,
    attempt: journal.at(-1)?.attempt ?? 0,
    // Not the claim of an attempt: one that runs is told that it is over.
    claim: newId(),
    software_version: softwareVersion(),
    worker: KEEPER,
    node: KEEPER,
    runtime: 'none',
    outcome: failure ? 'failed' : 'cancelled',
    resolved: null,
    reward: null,
    reward_row: 'cancelled' in verdict ? verdict.cancelled : 'failed',
    reward_table: `${run.reward.table}:${run.reward.hash}`,
    turns: 0,
    exit_status: null,
    failure,
    facts: null,
    tokens: { prompt: 0, completion: 0 },
    policy_version: run.policy?.version ?? null,
    seconds: {
      ...{ queued: 0, image: 0, sandbox: 0, agent: 0, model: 0, command: 0 },
      ...{ patch: 0, evaluation: 0, total: 0 },
    },
    artifact: null,
    finished_at: farm.clock.now(),
  };
  const reply = await farm.commit(run, result);
  await farm.jobs.drop([rolloutId]);
  return reply.status === 'committed';
}
