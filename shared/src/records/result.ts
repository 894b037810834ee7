/** The result of a rollout: about 1 KB, at most 4 KB. The artifact contains all other data. */
import { z } from 'zod';
import { Failure } from '../failures/failure.ts';
import { EvaluationEnd, PatchState, RewardComponents, Score } from './report.ts';
import { RewardParts } from './rewardparts.ts';
import { Variant } from './toolset.ts';
import { BranchPoint, ExitStatus } from './trajectory.ts';

export const Outcome = z.enum(['judged', 'failed', 'cancelled']);
export type Outcome = z.infer<typeof Outcome>;

/** Why a rollout was cancelled; the result stores the reason in `reward_row`. */
export const CancelReason = z.enum(['cancelled', 'deadline', 'early_stop', 'stale', 'orphan', 'lease']);
export type CancelReason = z.infer<typeof CancelReason>;

/** Parses a stored reason; unknown reasons of newer versions become `cancelled`. */
export const reasonOf = (text: string): CancelReason => CancelReason.catch('cancelled').parse(text);
export const outcomeOf = (text: string | undefined): Outcome => Outcome.catch('failed').parse(text);

/** Duration of each stage in seconds. `model` and `command` are parts of `agent`; `evaluation_start` and `tests` of `evaluation`. */
export const Seconds = z.object({
  queued: z.number(),
  image: z.number(),
  sandbox: z.number(),
  agent: z.number(),
  model: z.number(),
  command: z.number(),
  patch: z.number(),
  evaluation: z.number(),
  /** Seconds in which the clean container started. */
  evaluation_start: z.number().optional(),
  /** Seconds in which the evaluation script ran. */
  tests: z.number().optional(),
  total: z.number(),
});
export type Seconds = z.infer<typeof Seconds>;

/** Zero durations of all stages. */
export const NO_SECONDS: Seconds = {
  ...{ queued: 0, image: 0, sandbox: 0, agent: 0, model: 0, command: 0, patch: 0, evaluation: 0, total: 0 },
};

const TestCount = z.object({ success: z.number().int(), failure: z.number().int() });

/** The facts from which the reward table computes the reward; the reward depends on no other data. */
export const RewardFacts = z.object({
  exit_status: ExitStatus.nullable(),
  patch_state: PatchState,
  /** Origin of the patch: tree, output of the agent, or job. */
  patch_origin: z.enum(['tree', 'submission', 'given']),
  evaluation: EvaluationEnd,
  resolved: z.boolean().nullable(),
  /** Score of the grader; absent or null if the grader gives only a verdict. */
  score: Score.nullable().optional(),
  reward_components: RewardComponents.optional(),
  /** Numbers of tests of the report; null: the grader names no tests; absent: no evaluation, or an older version wrote the facts. */
  fail_to_pass: TestCount.nullable().optional(),
  pass_to_pass: TestCount.nullable().optional(),
  trust: z.enum(['clean', 'suspicious', 'forged']),
  /** Turns of all lines, and answers of a wrong form; null: unknown; absent: an older version wrote the facts. */
  turns: z.number().int().nullable().optional(),
  malformed_answers: z.number().int().nullable().optional(),
  /** Tokens after the first prompt, observations included, of the longest line that is trained on; null and absent: as above. */
  sequence_tokens: z.number().int().nullable().optional(),
  /** Whether the token limit cut the last answer. */
  cut_by_token_limit: z.boolean(),
  /** Share (0 to 1) of the agent's time that was spent waiting for the policy. */
  policy_share: z.number(),
  /**
   * Tokens received per second, divided by the median of the run's other rollouts on the worker; 0: no token received; null: unknown;
   * absent: imported result.
   */
  policy_pace: z.number().nullable().optional(),
  /** Whether the run is of kind `training` or requires token ids; absent in imported results. */
  training: z.boolean().optional(),
  /** Whether the agent's sandbox was killed because of a limit, or made unusable by the agent. */
  sandbox_killed: z.boolean(),
  /** Findings of the instance registry: whether gold resolves, and the share of the time limit that its tests need; null: unknown. */
  gold_healthy: z.boolean().nullable(),
  gold_time_share: z.number().nullable(),
  /**
   * Whether the tests start, from a control evaluation or another rollout. False: neither on the unchanged tree nor with gold. Null:
   * unknown for gold. Absent: not examined.
   */
  tests_start: z.boolean().nullable().optional(),
  /** Share of the time limit that the tests need with gold, otherwise on the unchanged tree; null or absent: as for `tests_start`. */
  control_time_share: z.number().nullable().optional(),
  /** Whether evaluation is off for the run, or the runtime is `host` without permission to reward. */
  ungraded: z.boolean(),
});
export type RewardFacts = z.infer<typeof RewardFacts>;

/** Number of answers with an unreadable tool call, and the marker that most of them contain. */
export const UnreadCalls = z.object({ answers: z.number().int().positive(), marker: z.string() });
export type UnreadCalls = z.infer<typeof UnreadCalls>;

const count = z.number().int().nonnegative();

/** The agent that came as a program. `lock` and `digest`: of its bundle. Counts of the recording endpoint. */
export const InstalledAgent = z.object({
  name: z.string(),
  version: z.string(),
  card: z.string().meta({ description: 'sha256 of the card and the options' }),
  digest: z.string().nullable(),
  exit_code: z.number().int().nullable(),
  /** Lines, and turns by the reason for which they are not trained on. */
  lines: count,
  masked: z.record(z.string(), count),
  /** Requests: all, rendered whole after the first, answered again without sampling, repeated in another form, refused. */
  requests: count,
  whole: count,
  repeated: count,
  repaired: count,
  refused: count,
  /** Requests of paths that the endpoint does not serve → how often; at most ten paths. */
  unknown_paths: z.record(z.string(), count).optional(),
  /** Omitted fields of requests, such as tools of a vendor's server → number of requests; at most ten names. */
  dropped: z.record(z.string(), count).optional(),
});
export type InstalledAgent = z.infer<typeof InstalledAgent>;

/** How an attempt used the turns that an earlier attempt recorded. */
export const Replay = z.object({
  turns: count.meta({ description: 'turns of this trajectory that an earlier attempt sampled' }),
  differed_at: count
    .nullable()
    .meta({ description: 'turn whose observation differed, so that the trajectory began anew; null: none' }),
  tokens: count.optional().meta({
    description: 'tokens of an answer that an earlier attempt received, behind which it was continued',
  }),
});
export type Replay = z.infer<typeof Replay>;

/** Marks a result of a dry run. `of`: the stored rollout; null: no rollout was chosen. `faults`: the faults that the script applied. */
export const DryRunMark = z.object({ of: z.string().nullable(), faults: z.array(z.string()) });
export type DryRunMark = z.infer<typeof DryRunMark>;

export const Result = z.object({
  format: z.literal('swefarm-result-1'),
  run_id: z.string(),
  rollout_id: z.string(),
  instance_id: z.string(),
  /** Dataset family; absent if no worker read the instance. */
  family: z.string().optional(),
  rollout_index: z.number().int(),
  /** Number of the committed attempt, from 1. */
  attempt: z.number().int(),
  /** Nonce of the claim of the committed attempt; absent in imported results. */
  claim: z.string().optional(),
  software_version: z.string().optional(),
  worker: z.string(),
  node: z.string(),
  runtime: z.string(),
  outcome: Outcome,
  resolved: z.boolean().nullable(),
  reward: z.number().nullable(),
  /** Contribution of each weighted part to the reward, or further numbers of the grader. */
  reward_components: RewardComponents.optional(),
  /** Parts of the reward without their weights; absent: no reward, or an older version wrote the result. */
  reward_parts: RewardParts.optional(),
  /** Row of the reward table that determined the reward, or reason of a cancellation. `reward_table`: `name:hash` of the table. */
  reward_row: z.string(),
  reward_table: z.string(),
  turns: z.number().int(),
  exit_status: ExitStatus.nullable(),
  unread_calls: UnreadCalls.optional(),
  branch_of: BranchPoint.optional(),
  /** Present only in a dry run: no model sampled this rollout. */
  dry_run: DryRunMark.optional(),
  /** Absent: the attempt replayed nothing. */
  replay: Replay.optional(),
  /** Number of submits, if the run allows several; the reward is that of the last. */
  submits: z.number().int().optional(),
  /** Prompt set and toolset of the rollout, if its run has any. */
  variant: Variant.optional(),
  /** Only for agents that come as programs: which one, and how its requests were recorded. */
  agent: InstalledAgent.optional(),
  failure: Failure.nullable(),
  facts: RewardFacts.nullable(),
  /** Rollout of the same instance whose evaluation of the same patch gave the report; absent: this rollout was graded by itself. */
  graded_by: z.string().optional(),
  tokens: z.object({ prompt: z.number().int(), completion: z.number().int() }),
  /** Policy version of the last turn; `first` and `last`: the first and the last version of all turns, if known. */
  policy_version: z.string().nullable(),
  policy_version_first: z.string().nullable().optional(),
  policy_version_last: z.string().nullable().optional(),
  seconds: Seconds,
  /** Locator of the artifact; null without one. */
  artifact: z.string().nullable(),
  /** Time of the commit in milliseconds since the epoch. */
  finished_at: z.number(),
});
export type Result = z.infer<typeof Result>;

/** Returns whether a token limit cut the rollout: the limit of the context or the sequence, or that of the last answer. */
export const isTruncated = ({ exit_status, facts }: Pick<Result, 'exit_status' | 'facts'>): boolean =>
  exit_status === 'context_limit' || facts?.cut_by_token_limit === true;
