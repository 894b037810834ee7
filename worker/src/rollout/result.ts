/** Builds the results of rollouts, with or without a worker that ran them. */
import { findUnreadCall, parseUsage } from '@swefarm/policy';
import {
  allAnswers,
  type Failure,
  NO_SECONDS,
  type Outcome,
  type Result,
  type RunRecord,
  sampledTurns,
  softwareVersion,
  type Trajectory,
  type UnreadCalls,
} from '@swefarm/shared';

type Attempt = Pick<Result, 'rollout_id' | 'instance_id' | 'rollout_index' | 'attempt' | 'claim'>;
type By = Pick<Result, 'worker' | 'node' | 'runtime' | 'finished_at'>;
type End = { outcome: Outcome; reward_row: string; failure: Failure | null };

/** Returns the result of a rollout without facts: no reward, no turns, no seconds. */
export function resultWithoutFacts(run: RunRecord, attempt: Attempt, by: By, end: End): Result {
  return {
    format: 'swefarm-result-1',
    run_id: run.run_id,
    ...attempt,
    software_version: softwareVersion(),
    ...by,
    ...end,
    ...(run.branch_of ? { branch_of: run.branch_of } : {}),
    ...(run.dry_run ? { dry_run: { of: null, faults: [] } } : {}),
    resolved: null,
    reward: null,
    reward_table: `${run.reward.table}:${run.reward.hash}`,
    turns: 0,
    exit_status: null,
    facts: null,
    tokens: { prompt: 0, completion: 0 },
    policy_version: run.policy?.version ?? null,
    seconds: NO_SECONDS,
    artifact: null,
  };
}

/** Returns the token counts that the endpoint reported, summed over all turns but those of the rollout of a branch. */
export function tokensOf(trajectory: Trajectory | null): Result['tokens'] {
  const tokens = { prompt: 0, completion: 0 };
  for (const turn of trajectory ? sampledTurns(trajectory) : []) {
    const usage = parseUsage(turn.usage);
    tokens.prompt += usage?.prompt_tokens ?? 0;
    tokens.completion += usage?.completion_tokens ?? 0;
  }
  return tokens;
}

/**
 * Returns the number of answers with a tool call that no parser could read, and the most frequent marker; undefined if every call was
 * readable. Many of them show a wrong parser, not a weak model.
 */
export function countUnreadCalls(trajectory: Trajectory): UnreadCalls | undefined {
  const apart = trajectory.token_mode === 'token-in';
  const unread = allAnswers(trajectory).flatMap((message) => findUnreadCall(message, apart) ?? []);
  const markers = Map.groupBy(unread, ({ marker }) => marker);
  const [most] = [...markers].sort(([, one], [, other]) => other.length - one.length);
  return most && { answers: unread.length, marker: most[0] };
}
