/** The result of a rollout: about 1 KB, at most 4. The artifact contains the rest. */
import { z } from 'zod';
import { Failure } from '../failures/failure.ts';
import { EvaluationEnd, PatchState, RewardComponents, Score } from './report.ts';
import { ExitStatus } from './trajectory.ts';

export const Outcome = z.enum(['judged', 'failed', 'cancelled']);
export type Outcome = z.infer<typeof Outcome>;

/** Why a rollout was cancelled; `reward_row` of its result. */
export const CancelReason = z.enum(['cancelled', 'deadline', 'early_stop', 'stale', 'orphan', 'lease']);
export type CancelReason = z.infer<typeof CancelReason>;

/** Parse stored values; unknown values of newer versions become the default. */
export const reasonOf = (text: string): CancelReason => CancelReason.catch('cancelled').parse(text);
export const outcomeOf = (text: string | undefined): Outcome => Outcome.catch('failed').parse(text);

/** Seconds by stage. `model` and `command` are parts of `agent`; `evaluation_start` and `tests` are parts of `evaluation`. */
export const Seconds = z.object({
  queued: z.number(),
  image: z.number(),
  sandbox: z.number(),
  agent: z.number(),
  model: z.number(),
  command: z.number(),
  patch: z.number(),
  evaluation: z.number(),
  /** Start of the clean container. */
  evaluation_start: z.number().optional(),
  /** Run of the eval script. */
  tests: z.number().optional(),
  total: z.number(),
});
export type Seconds = z.infer<typeof Seconds>;

/** The only input of the reward. */
export const RewardFacts = z.object({
  exit_status: ExitStatus.nullable(),
  patch_state: PatchState,
  /** Origin of the patch: tree, output of the agent, or job. */
  patch_origin: z.enum(['tree', 'submission', 'given']),
  evaluation: EvaluationEnd,
  resolved: z.boolean().nullable(),
  /** Absent or null if the grader gives only a verdict. */
  score: Score.nullable().optional(),
  reward_components: RewardComponents.optional(),
  trust: z.enum(['clean', 'suspicious', 'forged']),
  /** Whether the token limit cut the last answer. */
  cut_by_token_limit: z.boolean(),
  /** Share (0 to 1) of the agent's time spent waiting for the policy. */
  policy_share: z.number(),
  /**
   * Received tokens a second, divided by the median of the run's other rollouts on the worker; 0: no token. Null: unknown; absent in
   * imported results.
   */
  policy_pace: z.number().nullable().optional(),
  /** Whether the run is of kind `training` or requires token ids; absent in imported results. */
  training: z.boolean().optional(),
  /** Whether the agent's sandbox was killed by its limit, or broken by the agent. */
  sandbox_killed: z.boolean(),
  /** Findings of the instance registry: whether gold resolves, and its share of the time limit; null: unknown. */
  gold_healthy: z.boolean().nullable(),
  gold_time_share: z.number().nullable(),
  /**
   * Whether the tests start, by a control evaluation or another rollout: false if they start neither on the unchanged tree nor with
   * gold, null if unknown for gold. Absent: not examined.
   */
  tests_start: z.boolean().nullable().optional(),
  /** Share of the time limit for the tests of gold, else of the unchanged tree; null and absent as `tests_start`. */
  control_time_share: z.number().nullable().optional(),
  /** Whether evaluation is off for the run, or the runtime is `host` without permission to reward. */
  ungraded: z.boolean(),
});
export type RewardFacts = z.infer<typeof RewardFacts>;

/** Answers with an unreadable tool call, and the marker of most of them. */
export const UnreadCalls = z.object({ answers: z.number().int().positive(), marker: z.string() });
export type UnreadCalls = z.infer<typeof UnreadCalls>;

export const Result = z.object({
  format: z.literal('swefarm-result-1'),
  run_id: z.string(),
  rollout_id: z.string(),
  instance_id: z.string(),
  /** Absent if no worker read the instance. */
  family: z.string().optional(),
  rollout_index: z.number().int(),
  /** Number of the committed attempt, from 1. */
  attempt: z.number().int(),
  /** The nonce of that attempt's claim; absent in imported results. */
  claim: z.string().optional(),
  software_version: z.string().optional(),
  worker: z.string(),
  node: z.string(),
  runtime: z.string(),
  outcome: Outcome,
  resolved: z.boolean().nullable(),
  reward: z.number().nullable(),
  /** Parts of the reward, if the reward is the grader's score. */
  reward_components: RewardComponents.optional(),
  /** The deciding row of the reward table, and the table's name and hash. */
  reward_row: z.string(),
  reward_table: z.string(),
  turns: z.number().int(),
  exit_status: ExitStatus.nullable(),
  unread_calls: UnreadCalls.optional(),
  failure: Failure.nullable(),
  facts: RewardFacts.nullable(),
  tokens: z.object({ prompt: z.number().int(), completion: z.number().int() }),
  /** Policy version of the last turn; then the first and the last of all turns, if known. */
  policy_version: z.string().nullable(),
  policy_version_first: z.string().nullable().optional(),
  policy_version_last: z.string().nullable().optional(),
  seconds: Seconds,
  /** Locator of the artifact; null without one. */
  artifact: z.string().nullable(),
  /** Milliseconds since the epoch. */
  finished_at: z.number(),
});
export type Result = z.infer<typeof Result>;
