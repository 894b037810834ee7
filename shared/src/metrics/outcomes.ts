/** Metrics that the commit of each rollout counts in Redis; the gateway exposes the sums. */
import type { Definitions } from './definition.ts';

/** Upper bounds of the turns of a judged rollout. */
export const TURN_BUCKETS = [1, 2, 5, 10, 20, 30, 50, 75, 100, 150] as const;
/** Upper bounds of the seconds of a committed attempt. */
export const ROLLOUT_BUCKETS = [1, 5, 10, 30, 60, 120, 300, 600, 1200, 2400, 3600, 7200] as const;

export const FAMILY_ENDS = ['resolved', 'unresolved', 'scored', 'ungraded', 'failed', 'cancelled'] as const;
export type FamilyEnd = (typeof FAMILY_ENDS)[number];

/** Maximum number of policy versions with metrics, for each kind of run: the last versions that committed. */
export const VERSION_WINDOW = 8;

/** Maximum number of models with metrics of costs, for each kind of run: the first models that committed. */
export const MODEL_LIMIT = 32;
/** Label of the models beyond this maximum. */
export const OTHER_MODELS = 'other';

export const OUTCOME_METRICS = {
  rollouts: {
    name: 'swefarm_rollouts_total',
    type: 'counter',
    labels: ['kind', 'outcome'],
    unit: 'rollouts',
    help: 'Rollouts by outcome: judged, failed or cancelled.',
  },
  resolved: {
    name: 'swefarm_rollouts_resolved_total',
    type: 'counter',
    labels: ['kind'],
    unit: 'rollouts',
    help: 'Judged rollouts that resolved and have a reward above 0.',
  },
  scored: {
    name: 'swefarm_rollouts_scored_total',
    type: 'counter',
    labels: ['kind'],
    unit: 'rollouts',
    help: 'Judged rollouts with a score and no verdict; they are in no resolve rate.',
  },
  failed: {
    name: 'swefarm_rollouts_failed_total',
    type: 'counter',
    labels: ['kind', 'stage', 'class'],
    unit: 'rollouts',
    help: 'Failed rollouts by stage and class of the failure.',
  },
  cancelled: {
    name: 'swefarm_rollouts_cancelled_total',
    type: 'counter',
    labels: ['kind', 'reason'],
    unit: 'rollouts',
    help: 'Cancelled rollouts: cancelled, deadline, early_stop, stale, orphan or lease.',
  },
  exits: {
    name: 'swefarm_rollouts_exited_total',
    type: 'counter',
    labels: ['kind', 'exit_status'],
    unit: 'rollouts',
    help: 'Committed rollouts by exit status of the agent.',
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
    help: 'Answers with an unreadable tool call, by its marker.',
  },
  turns: {
    name: 'swefarm_rollout_turns',
    type: 'histogram',
    labels: ['kind'],
    unit: 'turns',
    help: 'Turns of judged rollouts.',
    buckets: TURN_BUCKETS,
  },
  seconds: {
    name: 'swefarm_rollout_seconds',
    type: 'histogram',
    labels: ['kind'],
    unit: 'seconds',
    help: 'Committed attempts, from claim to commit.',
    buckets: ROLLOUT_BUCKETS,
  },
  stageSecondsSum: {
    name: 'swefarm_rollout_stage_seconds_total',
    type: 'counter',
    labels: ['kind', 'stage'],
    unit: 'seconds',
    help: 'Committed attempts by stage; model and command are parts of agent, evaluation_start and tests of evaluation.',
  },
  tokens: {
    name: 'swefarm_tokens_total',
    type: 'counter',
    labels: ['kind', 'side'],
    unit: 'tokens',
    help: 'Billed tokens of committed rollouts: prompt or completion.',
  },
  cost: {
    name: 'swefarm_cost_dollars_total',
    type: 'counter',
    labels: ['kind', 'model'],
    unit: 'dollars',
    help: `Cost of committed rollouts in US dollars (docs/collection.md#prices); models beyond the first ${MODEL_LIMIT} count as ${OTHER_MODELS}.`,
  },
  priced: {
    name: 'swefarm_priced_rollouts_total',
    type: 'counter',
    labels: ['kind', 'model'],
    unit: 'rollouts',
    help: 'Committed rollouts whose run has a price.',
  },
  pricedResolved: {
    name: 'swefarm_priced_resolved_total',
    type: 'counter',
    labels: ['kind', 'model'],
    unit: 'rollouts',
    help: 'Resolved rollouts whose run has a price.',
  },
  rewarded: {
    name: 'swefarm_rollouts_rewarded_total',
    type: 'counter',
    labels: ['kind'],
    unit: 'rollouts',
    help: 'Judged rollouts with a reward.',
  },
  reward: {
    name: 'swefarm_reward_total',
    type: 'counter',
    labels: ['kind'],
    unit: 'reward',
    help: 'Sum of rewards.',
  },
  reports: {
    name: 'swefarm_reports_total',
    type: 'counter',
    labels: ['kind', 'trust'],
    unit: 'rollouts',
    help: 'Judged rollouts by trust: clean, suspicious or forged.',
  },
  evaluations: {
    name: 'swefarm_evaluations_total',
    type: 'counter',
    labels: ['kind', 'end'],
    unit: 'rollouts',
    help: 'Committed rollouts by end of their evaluation: not_run, completed, timed_out, tests_cannot_start, sandbox_killed.',
  },
  attempts: {
    name: 'swefarm_attempts_total',
    type: 'counter',
    labels: ['kind', 'class'],
    unit: 'attempts',
    help: 'Attempts of committed rollouts by how they ended: done, drained, parked (committed without a start), or the class of the failure; lost: the worker stopped responding.',
  },
  groups: {
    name: 'swefarm_groups_total',
    type: 'counter',
    labels: ['kind', 'end'],
    unit: 'groups',
    help: 'Finished groups: complete or short of usable rollouts.',
  },
  refills: {
    name: 'swefarm_group_refills_total',
    type: 'counter',
    labels: ['kind'],
    unit: 'rollouts',
    help: 'Rollouts that replaced lost ones (--refills).',
  },
  families: {
    name: 'swefarm_family_rollouts_total',
    type: 'counter',
    labels: ['kind', 'family', 'end'],
    unit: 'rollouts',
    help: 'Committed rollouts by family and end: resolved, unresolved, scored, ungraded, failed or cancelled.',
  },
  versionRollouts: {
    name: 'swefarm_version_rollouts_total',
    type: 'counter',
    labels: ['kind', 'version', 'outcome'],
    unit: 'rollouts',
    help: `Committed rollouts of the ${VERSION_WINDOW} latest policy versions.`,
  },
  versionResolved: {
    name: 'swefarm_version_resolved_total',
    type: 'counter',
    labels: ['kind', 'version'],
    unit: 'rollouts',
    help: 'Resolved rollouts by policy version.',
  },
  versionScored: {
    name: 'swefarm_version_scored_total',
    type: 'counter',
    labels: ['kind', 'version'],
    unit: 'rollouts',
    help: 'Scored rollouts by policy version.',
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
