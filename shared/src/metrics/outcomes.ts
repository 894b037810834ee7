/** Metrics that `commit` counts, once for each rollout; the gateway exposes the sums in Redis. */
import type { Definitions } from './definition.ts';

/** Upper bounds of the turns of a judged rollout. */
export const TURN_BUCKETS = [1, 2, 5, 10, 20, 30, 50, 75, 100, 150] as const;
/** Upper bounds of the seconds of a committed attempt. */
export const ROLLOUT_BUCKETS = [1, 5, 10, 30, 60, 120, 300, 600, 1200, 2400, 3600, 7200] as const;

export const FAMILY_ENDS = ['resolved', 'unresolved', 'scored', 'ungraded', 'failed', 'cancelled'] as const;
export type FamilyEnd = (typeof FAMILY_ENDS)[number];

/** Number of policy versions with series, for each kind of run: those that committed last. */
export const VERSION_WINDOW = 8;

/** Number of models with series of costs, for each kind of run: the first that committed. */
export const MODEL_LIMIT = 32;
/** The label of all other models. */
export const OTHER_MODELS = 'other';

export const OUTCOME_METRICS = {
  rollouts: {
    name: 'swefarm_rollouts_total',
    type: 'counter',
    labels: ['kind', 'outcome'],
    unit: 'rollouts',
    help: 'Committed rollouts by outcome: judged, failed or cancelled.',
  },
  resolved: {
    name: 'swefarm_rollouts_resolved_total',
    type: 'counter',
    labels: ['kind'],
    unit: 'rollouts',
    help: 'Judged rollouts that resolved and have a reward above 0, without forged ones; divided by rollouts{outcome="judged"} without the scored ones it is the resolve rate.',
  },
  scored: {
    name: 'swefarm_rollouts_scored_total',
    type: 'counter',
    labels: ['kind'],
    unit: 'rollouts',
    help: 'Judged rollouts with a reward but no verdict, because their dataset gives a number; excluded from resolve rates.',
  },
  failed: {
    name: 'swefarm_rollouts_failed_total',
    type: 'counter',
    labels: ['kind', 'stage', 'class'],
    unit: 'rollouts',
    help: 'Failed rollouts by stage and class of the committed failure.',
  },
  cancelled: {
    name: 'swefarm_rollouts_cancelled_total',
    type: 'counter',
    labels: ['kind', 'reason'],
    unit: 'rollouts',
    help: 'Cancelled rollouts by reason: cancelled, deadline, early_stop, stale, orphan or lease.',
  },
  exits: {
    name: 'swefarm_rollouts_exited_total',
    type: 'counter',
    labels: ['kind', 'exit_status'],
    unit: 'rollouts',
    help: 'Committed rollouts by the exit status of the agent.',
  },
  answers: {
    name: 'swefarm_answers_total',
    type: 'counter',
    labels: ['kind'],
    unit: 'answers',
    help: 'Answers of the model in committed rollouts.',
  },
  unread: {
    name: 'swefarm_answers_unread_total',
    type: 'counter',
    labels: ['kind', 'marker'],
    unit: 'answers',
    help: 'Answers with an unreadable tool call, by the marker that begins it: the parser of tool calls is wrong, or the model has not learned the form.',
  },
  turns: {
    name: 'swefarm_rollout_turns',
    type: 'histogram',
    labels: ['kind'],
    unit: 'turns',
    help: 'Turns of judged rollouts; sum over count is the average.',
    buckets: TURN_BUCKETS,
  },
  seconds: {
    name: 'swefarm_rollout_seconds',
    type: 'histogram',
    labels: ['kind'],
    unit: 'seconds',
    help: 'Seconds of the committed attempt, from claim to commit.',
    buckets: ROLLOUT_BUCKETS,
  },
  stageSecondsSum: {
    name: 'swefarm_rollout_stage_seconds_total',
    type: 'counter',
    labels: ['kind', 'stage'],
    unit: 'seconds',
    help: 'Seconds of committed attempts by stage; model and command are parts of agent, evaluation_start and tests of evaluation.',
  },
  tokens: {
    name: 'swefarm_tokens_total',
    type: 'counter',
    labels: ['kind', 'side'],
    unit: 'tokens',
    help: 'Tokens of committed rollouts as the endpoint billed them: prompt (over all turns) or completion.',
  },
  cost: {
    name: 'swefarm_cost_dollars_total',
    type: 'counter',
    labels: ['kind', 'model'],
    unit: 'dollars',
    help: `US dollars of committed rollouts, by the price at the start of their run (docs/collection.md); models beyond the first ${MODEL_LIMIT} count as ${OTHER_MODELS}.`,
  },
  priced: {
    name: 'swefarm_priced_rollouts_total',
    type: 'counter',
    labels: ['kind', 'model'],
    unit: 'rollouts',
    help: 'Committed rollouts whose run has a price; the cost divided by them is the mean cost of a rollout.',
  },
  pricedResolved: {
    name: 'swefarm_priced_resolved_total',
    type: 'counter',
    labels: ['kind', 'model'],
    unit: 'rollouts',
    help: 'Resolved rollouts whose run has a price; the cost divided by them is the cost of a success.',
  },
  rewarded: {
    name: 'swefarm_rollouts_rewarded_total',
    type: 'counter',
    labels: ['kind'],
    unit: 'rollouts',
    help: 'Judged rollouts that carry a reward.',
  },
  reward: {
    name: 'swefarm_reward_total',
    type: 'counter',
    labels: ['kind'],
    unit: 'reward',
    help: 'Sum of rewards; divided by rewarded rollouts it is the mean reward.',
  },
  reports: {
    name: 'swefarm_reports_total',
    type: 'counter',
    labels: ['kind', 'trust'],
    unit: 'rollouts',
    help: 'Judged rollouts by the trust in their report: clean, suspicious or forged.',
  },
  evaluations: {
    name: 'swefarm_evaluations_total',
    type: 'counter',
    labels: ['kind', 'end'],
    unit: 'rollouts',
    help: 'Committed rollouts by the end of their evaluation: not_run, completed, timed_out, tests_cannot_start, sandbox_killed.',
  },
  attempts: {
    name: 'swefarm_attempts_total',
    type: 'counter',
    labels: ['kind', 'class'],
    unit: 'attempts',
    help: 'Attempts of committed rollouts by end: done, drained, parked (committed without a start), or the class of the failure; lost: the worker stopped responding.',
  },
  groups: {
    name: 'swefarm_groups_total',
    type: 'counter',
    labels: ['kind', 'end'],
    unit: 'groups',
    help: 'Groups whose last rollout was committed: complete (every rollout usable) or short.',
  },
  refills: {
    name: 'swefarm_group_refills_total',
    type: 'counter',
    labels: ['kind'],
    unit: 'rollouts',
    help: 'Rollouts added to groups that would have ended short.',
  },
  families: {
    name: 'swefarm_family_rollouts_total',
    type: 'counter',
    labels: ['kind', 'family', 'end'],
    unit: 'rollouts',
    help: 'Committed rollouts by the dataset family of their instance and by end: resolved, unresolved, scored, ungraded, failed or cancelled.',
  },
  versionRollouts: {
    name: 'swefarm_version_rollouts_total',
    type: 'counter',
    labels: ['kind', 'version', 'outcome'],
    unit: 'rollouts',
    help: `Committed rollouts by policy version; only the ${VERSION_WINDOW} versions that committed last have series.`,
  },
  versionResolved: {
    name: 'swefarm_version_resolved_total',
    type: 'counter',
    labels: ['kind', 'version'],
    unit: 'rollouts',
    help: 'Judged rollouts that resolved, by policy version.',
  },
  versionScored: {
    name: 'swefarm_version_scored_total',
    type: 'counter',
    labels: ['kind', 'version'],
    unit: 'rollouts',
    help: 'Judged rollouts with a number and no verdict, by policy version.',
  },
  versionTurns: {
    name: 'swefarm_version_turns_total',
    type: 'counter',
    labels: ['kind', 'version'],
    unit: 'turns',
    help: 'Turns of judged rollouts, by policy version.',
  },
  versionReward: {
    name: 'swefarm_version_reward_total',
    type: 'counter',
    labels: ['kind', 'version'],
    unit: 'reward',
    help: 'Sum of rewards, by policy version.',
  },
} as const satisfies Definitions;
