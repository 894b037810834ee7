/** Decides a reward only from recorded facts and the reward table, so that stored results can get new rewards without a run. */
import {
  FAILURES,
  type FailureClass,
  type Report,
  type RewardChoice,
  type RewardComponents,
  type RewardFacts,
  type RewardParts,
  UsageError,
} from '@swefarm/shared';
import { rewardByParts } from './parts.ts';
import { matches, REWARD_GROUPS, REWARD_ROWS, type RewardRow, type RewardVerdict } from './table.ts';

export type RewardDecision = {
  outcome: 'judged' | 'failed';
  reward: number | null;
  /** Null if the rollout failed or has no verdict. A rollout that is rewarded without tests (empty patch) is not resolved. */
  resolved: boolean | null;
  /** Contribution of each weighted part, or components of the grader's score; absent if there are none. */
  reward_components?: RewardComponents;
  /** Parts of the reward; absent without a reward. */
  reward_parts?: RewardParts;
  /** Facts that the weights need and that an older version did not record; absent: none. */
  missing?: string[];
  row: string;
  failure: { class: FailureClass; message: string } | null;
};

export type RewardOverrides = Readonly<Record<string, RewardChoice>>;

/** Facts that are known after the agent and before the evaluation. An existing patch counts as `applied`. */
type FactsBeforeEvaluation = Pick<
  RewardFacts,
  | 'exit_status'
  | 'cut_by_token_limit'
  | 'policy_share'
  | 'policy_pace'
  | 'training'
  | 'sandbox_killed'
  | 'ungraded'
  | 'patch_state'
>;

/**
 * Decides outcome and reward. A rollout without grading (evaluation off, dry run) is `judged` with reward null: it is complete and is no
 * training sample. The override `none` has the same effect, except on a row that fails by default. The override `grade` has an effect only
 * if the evaluation completed. `weights` (`--reward`) changes the number of a reward, and never whether there is one.
 *
 * @throws UsageError for an override of an unknown or fixed row, and for unreadable weights
 */
export function decideReward(
  facts: RewardFacts,
  overrides: RewardOverrides = {},
  weights: string | null = null,
): RewardDecision {
  const choices = checkOverrides(overrides);
  const decided = decideByRows(facts, choices);
  if (decided.reward === null) return decided;
  const forged = facts.trust === 'forged' && choices.get('forged') !== 'grade';
  const { missing, ...parts } = rewardByParts(facts, { ...decided, reward: decided.reward, forged }, weights);
  return { ...decided, ...parts, ...(missing.length > 0 ? { missing } : {}) };
}

function decideByRows(facts: RewardFacts, choices: ReadonlyMap<string, RewardChoice>): RewardDecision {
  const graded = facts.evaluation === 'completed';
  for (const row of REWARD_ROWS) {
    if (!matches(row.when, facts)) continue;
    const verdict = chosen(row, choices.get(row.row), graded);
    if (verdict !== 'grade') return decision(row.row, verdict, facts);
  }
  throw new UsageError('the reward table has no row for these facts');
}

/** Whether the evaluation must run. `evaluateEmpty` (preflight) requests the status of each test even if the reward is known. */
export function needsEvaluation(
  facts: FactsBeforeEvaluation,
  overrides: RewardOverrides = {},
  options: { evaluateEmpty?: boolean } = {},
): boolean {
  if (facts.ungraded) return false;
  if (options.evaluateEmpty) return facts.patch_state !== 'too_large';
  const choices = checkOverrides(overrides);
  const assumed: RewardFacts = {
    ...facts,
    patch_origin: 'tree',
    evaluation: 'completed',
    resolved: true,
    trust: 'clean',
    gold_healthy: null,
    gold_time_share: null,
  };
  for (const row of REWARD_ROWS) {
    if (!matches(row.when, assumed)) continue;
    if (chosen(row, choices.get(row.row), true) === 'grade') continue;
    if (row.evaluated && !choices.has(row.row)) continue;
    return row.row === 'resolved';
  }
  return false;
}

/** Returns the choice of each row, with groups expanded to rows. @throws UsageError for an unknown or fixed row */
export function checkOverrides(overrides: RewardOverrides): Map<string, RewardChoice> {
  const choices = new Map<string, RewardChoice>();
  const entries = Object.entries(overrides);
  for (const [name, choice] of entries) {
    for (const member of REWARD_GROUPS[name] ?? []) choices.set(member, choice);
  }
  for (const [name, choice] of entries) {
    if (Object.hasOwn(REWARD_GROUPS, name)) continue;
    const row = REWARD_ROWS.find((candidate) => candidate.row === name);
    if (!row || row.fixed) {
      const free = REWARD_ROWS.filter((candidate) => !candidate.fixed).map((candidate) => candidate.row);
      const names = [...Object.keys(REWARD_GROUPS), ...free].join(', ');
      throw new UsageError(
        `reward override "${name}": ${row ? 'this row is fixed' : 'no such row'}; possible: ${names}`,
      );
    }
    choices.set(name, choice);
  }
  return choices;
}

function chosen(row: RewardRow, choice: RewardChoice | undefined, graded: boolean): RewardVerdict {
  const failsByDefault = typeof row.verdict === 'object' && 'failed' in row.verdict;
  switch (choice) {
    case 'zero':
      return { reward: 0 };
    case 'none':
      return failsByDefault ? row.verdict : { reward: null };
    case 'grade':
      return graded ? 'grade' : row.verdict;
    default:
      return row.verdict;
  }
}

function decision(row: string, verdict: Exclude<RewardVerdict, 'grade'>, facts: RewardFacts): RewardDecision {
  if ('reward' in verdict) {
    if (verdict.reward === 'score') return scored(row, facts);
    const { reward } = verdict;
    const resolved = facts.resolved ?? (reward === null ? null : false);
    return { outcome: 'judged', reward, resolved, row, failure: null };
  }
  const failureClass = verdict.failed;
  const share = facts.policy_share.toFixed(2);
  const pace = facts.policy_pace?.toFixed(2);
  const detail =
    failureClass === 'policy_slow'
      ? ` (share of the time spent waiting: ${share}; tokens a second by the median of the run: ${pace})`
      : '';
  return {
    outcome: 'failed',
    reward: null,
    resolved: null,
    row,
    failure: { class: failureClass, message: `${FAILURES[failureClass].meaning}${detail}` },
  };
}

/** Returns the grader's number as the reward. `resolved` is null if the grader gives no verdict. */
const scored = (
  row: string,
  { score = null, resolved, reward_components: parts }: RewardFacts,
): RewardDecision => ({
  outcome: 'judged',
  reward: score,
  resolved,
  ...(parts && Object.keys(parts).length > 0 ? { reward_components: parts } : {}),
  row,
  failure: null,
});

/**
 * Returns the facts with the values of the report, which replace the values of an earlier report. Some harnesses (SWE-bench-Live, SWE-bench
 * Pro) run the tests even if the patch did not apply. Then the tests decide, and for the reward the patch counts as applied, although the
 * report has `not_applied`.
 */
export function withReport(facts: RewardFacts, report: Report): RewardFacts {
  const { score: _score, reward_components: _parts, ...rest } = facts;
  const { FAIL_TO_PASS = null, PASS_TO_PASS = null } = report.tests_status ?? {};
  const ranUnapplied = report.patch_state === 'not_applied' && report.evaluation !== 'not_run';
  return {
    ...rest,
    patch_state: ranUnapplied ? 'applied' : report.patch_state,
    evaluation: report.evaluation,
    resolved: report.resolved,
    fail_to_pass: FAIL_TO_PASS && countOf(FAIL_TO_PASS),
    pass_to_pass: PASS_TO_PASS && countOf(PASS_TO_PASS),
    trust: report.trust.level,
    ...(report.score === undefined ? {} : { score: report.score }),
    ...(report.reward_components ? { reward_components: report.reward_components } : {}),
  };
}

const countOf = ({ success, failure }: { success: readonly string[]; failure: readonly string[] }) => ({
  success: success.length,
  failure: failure.length,
});
