/** Metrics that the commit of each rollout counts in Redis; the gateway exposes the sums. */
import { type Definitions, metricsOf } from './definition.ts';

const counter = metricsOf('counter', 'count', 'kind');
const counterOfSeconds = metricsOf('counter', 'seconds', 'kind');
const histogram = metricsOf('histogram', 'count', 'kind');
const histogramOfSeconds = metricsOf('histogram', 'seconds', 'kind');

/** Upper bounds of the turns of a judged rollout. */
export const TURN_BUCKETS = [1, 2, 5, 10, 20, 30, 50, 75, 100, 150] as const;
/** Upper bounds of the seconds of a committed attempt. */
export const ROLLOUT_BUCKETS = [1, 5, 10, 30, 60, 120, 300, 600, 1200, 2400, 3600, 7200] as const;

export const FAMILY_ENDS = ['resolved', 'unresolved', 'scored', 'ungraded', 'failed', 'cancelled'] as const;
export type FamilyEnd = (typeof FAMILY_ENDS)[number];

/** Maximum number of policy versions with metrics, for each kind of run: the last versions that committed. */
export const VERSION_WINDOW = 8;

/** Maximum number of models with their own cost metrics, for each kind of run: the models of the earliest committed results. */
export const MODEL_LIMIT = 32;
/** Label of the models beyond this maximum. */
export const OTHER_MODELS = 'other';

export const OUTCOME_METRICS = {
  rollouts: counter('swefarm_rollouts_total', 'Rollouts by outcome: judged, failed or cancelled.', 'outcome'),
  resolved: counter(
    'swefarm_rollouts_resolved_total',
    'Judged rollouts that resolved and have a reward above 0.',
  ),
  scored: counter(
    'swefarm_rollouts_scored_total',
    'Judged rollouts with a score and no verdict; they are in no resolve rate.',
  ),
  failed: counter(
    'swefarm_rollouts_failed_total',
    'Failed rollouts by stage and class of the failure.',
    'stage',
    'class',
  ),
  cancelled: counter(
    'swefarm_rollouts_cancelled_total',
    'Cancelled rollouts: cancelled, deadline, early_stop, stale, orphan or lease.',
    'reason',
  ),
  exits: counter(
    'swefarm_rollouts_exited_total',
    'Committed rollouts by exit status of the agent.',
    'exit_status',
  ),
  answers: counter('swefarm_answers_total', 'Answers of the model in committed rollouts.'),
  unread: counter(
    'swefarm_answers_unread_total',
    'Answers with an unreadable tool call, by its marker.',
    'marker',
  ),
  turns: {
    ...histogram('swefarm_rollout_turns', 'Turns of judged rollouts.'),
    buckets: TURN_BUCKETS,
  },
  seconds: {
    ...histogramOfSeconds('swefarm_rollout_seconds', 'Committed attempts, from claim to commit.'),
    buckets: ROLLOUT_BUCKETS,
  },
  stageSecondsSum: counterOfSeconds(
    'swefarm_rollout_stage_seconds_total',
    'Committed attempts by stage; model and command are parts of agent, evaluation_start and tests of evaluation.',
    'stage',
  ),
  tokens: counter(
    'swefarm_tokens_total',
    'Billed tokens of committed rollouts: prompt or completion.',
    'side',
  ),
  cost: counter(
    'swefarm_cost_dollars_total',
    `Cost of committed rollouts in US dollars (docs/collection.md#prices); models beyond the first ${MODEL_LIMIT} count as ${OTHER_MODELS}.`,
    'model',
  ),
  priced: counter('swefarm_priced_rollouts_total', 'Committed rollouts whose run has a price.', 'model'),
  pricedResolved: counter(
    'swefarm_priced_resolved_total',
    'Resolved rollouts whose run has a price.',
    'model',
  ),
  rewarded: counter('swefarm_rollouts_rewarded_total', 'Judged rollouts with a reward.'),
  reward: counter('swefarm_reward_total', 'Sum of rewards.'),
  part: counter(
    'swefarm_reward_part_total',
    'Sum of each part of the reward, without its weight (docs/rewards.md).',
    'part',
  ),
  partKnown: counter('swefarm_reward_part_rollouts_total', 'Rewarded rollouts whose part is known.', 'part'),
  reports: counter(
    'swefarm_reports_total',
    'Judged rollouts by trust: clean, suspicious or forged.',
    'trust',
  ),
  evaluations: counter(
    'swefarm_evaluations_total',
    'Committed rollouts by end of their evaluation: not_run, completed, timed_out, tests_cannot_start, sandbox_killed.',
    'end',
  ),
  attempts: counter(
    'swefarm_attempts_total',
    'Attempts of committed rollouts by how they ended: done, drained, parked (committed without a start), or the class of the failure; lost: the worker stopped responding.',
    'class',
  ),
  groups: counter('swefarm_groups_total', 'Finished groups: complete or short of usable rollouts.', 'end'),
  mixedGroups: counter(
    'swefarm_groups_mixed_total',
    'Finished groups whose rewards differ, so that they have advantages.',
  ),
  droppedGroups: counter(
    'swefarm_groups_dropped_total',
    'Drawn groups that do not count for --until-groups: uniform, short, cancelled or surplus.',
    'reason',
  ),
  refills: counter('swefarm_group_refills_total', 'Rollouts that replaced failed ones (--refills).'),
  families: counter(
    'swefarm_family_rollouts_total',
    'Committed rollouts by family and end: resolved, unresolved, scored, ungraded, failed or cancelled.',
    'family',
    'end',
  ),
  versionRollouts: counter(
    'swefarm_version_rollouts_total',
    `Committed rollouts of the ${VERSION_WINDOW} latest policy versions.`,
    'version',
    'outcome',
  ),
  versionResolved: counter(
    'swefarm_version_resolved_total',
    'Resolved rollouts by policy version.',
    'version',
  ),
  versionScored: counter('swefarm_version_scored_total', 'Scored rollouts by policy version.', 'version'),
  versionTurns: counter(
    'swefarm_version_turns_total',
    'Turns of judged rollouts, by policy version.',
    'version',
  ),
  versionReward: counter('swefarm_version_reward_total', 'Sum of rewards, by policy version.', 'version'),
} satisfies Definitions;
