/** The one result of a rollout: facts of about 1 KB, never more than 4; what is long lies in the artifact. */
import { z } from 'zod';
import { Failure } from '../failures/failure.ts';
import { EvaluationEnd, PatchState, RewardComponents, Score } from './report.ts';
import { ExitStatus } from './trajectory.ts';

export const Outcome = z.enum(['judged', 'failed', 'cancelled']);
export type Outcome = z.infer<typeof Outcome>;

/** Why a rollout was cancelled; stands in its result as the row of the reward table. */
export const CancelReason = z.enum(['cancelled', 'deadline', 'early_stop', 'stale', 'orphan', 'lease']);
export type CancelReason = z.infer<typeof CancelReason>;

/** Reads the values stored in Redis; a value of a newer version is read as the plainest one. */
export const reasonOf = (text: string): CancelReason => CancelReason.catch('cancelled').parse(text);
export const outcomeOf = (text: string | undefined): Outcome => Outcome.catch('failed').parse(text);

/** Seconds by stage. `model` and `command` are sums inside `agent`; `evaluation_start` and `tests` are inside `evaluation`. */
export const Seconds = z.object({
  queued: z.number(),
  image: z.number(),
  sandbox: z.number(),
  agent: z.number(),
  model: z.number(),
  command: z.number(),
  patch: z.number(),
  evaluation: z.number(),
  /** Until the clean container was there. */
  evaluation_start: z.number().optional(),
  /** The eval script. */
  tests: z.number().optional(),
  total: z.number(),
});
export type Seconds = z.infer<typeof Seconds>;

/** What the reward is computed from, and all it is computed from. */
export const RewardFacts = z.object({
  exit_status: ExitStatus.nullable(),
  patch_state: PatchState,
  /** Who made the patch: taken from the tree by the worker, printed by the agent, or given with the job. */
  patch_origin: z.enum(['tree', 'submission', 'given']),
  evaluation: EvaluationEnd,
  resolved: z.boolean().nullable(),
  /** As in the report: absent or null where the grader gives a verdict alone. */
  score: Score.nullable().optional(),
  reward_components: RewardComponents.optional(),
  trust: z.enum(['clean', 'suspicious', 'forged']),
  /** At least one answer was cut by the token limit, and the last one was. */
  cut_by_token_limit: z.boolean(),
  /** Share of the agent's time spent waiting for the policy, 0 to 1. */
  policy_share: z.number(),
  /**
   * Tokens a second that it heard, as a share of the median of the run's other rollouts on its worker; 0: it heard none. Null: not known;
   * absent in imported results.
   */
  policy_pace: z.number().nullable().optional(),
  /** The run is for training: of kind `training`, or its token ids are required. Absent as above. */
  training: z.boolean().optional(),
  /** The agent's sandbox was killed by its own limit, or broken by the agent. */
  sandbox_killed: z.boolean(),
  /** What the instance registry knows of gold: resolves here, and in which share of the time limit; null: unknown. */
  gold_healthy: z.boolean().nullable(),
  gold_time_share: z.number().nullable(),
  /**
   * Whether the tests start under these conditions, by a control evaluation or by another rollout: false where they start neither on
   * the untouched tree nor with gold, null where that of gold cannot be known. Absent: nothing was asked.
   */
  tests_start: z.boolean().nullable().optional(),
  /** Share of the time limit that gold's tests need, or else those of the untouched tree; absent and null as above. */
  control_time_share: z.number().nullable().optional(),
  /** Evaluation was switched off for the run, or ran on the `host` dry run without leave to reward. */
  ungraded: z.boolean(),
});
export type RewardFacts = z.infer<typeof RewardFacts>;

/** Answers with a tool call that could not be read, and the marker that most of them begin it with. */
export const UnreadCalls = z.object({ answers: z.number().int().positive(), marker: z.string() });
export type UnreadCalls = z.infer<typeof UnreadCalls>;

export const Result = z.object({
  format: z.literal('swefarm-result-1'),
  run_id: z.string(),
  rollout_id: z.string(),
  instance_id: z.string(),
  /** Of the instance; absent where no worker has read the instance. */
  family: z.string().optional(),
  rollout_index: z.number().int(),
  /** Number of the attempt that was committed, from 1. */
  attempt: z.number().int(),
  /** The nonce of that attempt's claim; absent in imported results. */
  claim: z.string().optional(),
  /** The software that committed it. */
  software_version: z.string().optional(),
  worker: z.string(),
  node: z.string(),
  runtime: z.string(),
  outcome: Outcome,
  resolved: z.boolean().nullable(),
  reward: z.number().nullable(),
  /** What the reward is made of, where the grader says so and the reward is its score. */
  reward_components: RewardComponents.optional(),
  /** Row of the reward table that decided, and the table's name and hash. */
  reward_row: z.string(),
  reward_table: z.string(),
  turns: z.number().int(),
  exit_status: ExitStatus.nullable(),
  /** Absent when every call was read. */
  unread_calls: UnreadCalls.optional(),
  failure: Failure.nullable(),
  facts: RewardFacts.nullable(),
  tokens: z.object({ prompt: z.number().int(), completion: z.number().int() }),
  /** That of the last turn; its first and last one, where turns tell: who trains on it cares for the oldest. */
  policy_version: z.string().nullable(),
  policy_version_first: z.string().nullable().optional(),
  policy_version_last: z.string().nullable().optional(),
  seconds: Seconds,
  /** Locator of the artifact with trajectory, patch, report and test log; null when none was stored. */
  artifact: z.string().nullable(),
  /** Milliseconds since the epoch. */
  finished_at: z.number(),
});
export type Result = z.infer<typeof Result>;
