/** The reward table defines all rewards. Every result records the hash of the table. */
import { createHash } from 'node:crypto';
import type { FailureClass, RewardFacts, RewardPart } from '@swefarm/shared';

/** `fact: [values]` is true if the fact equals one of the values. `at_least`, `below` and `known` are true only for numbers. */
type Bound = { at_least: number } | { below: number } | { known: true };
export type RewardCondition = { [K in keyof RewardFacts]?: RewardFacts[K][] | Bound };

/** `reward`: the rollout is judged; `score` is the grader's number. `failed`: the rollout has no reward. `grade`: later rows decide. */
export type RewardVerdict = { reward: 0 | 1 | null | 'score' } | { failed: FailureClass } | 'grade';

/** Returns whether all conditions are true for the facts. */
export function matches(when: RewardCondition, facts: RewardFacts): boolean {
  return Object.entries(when).every(([name, expected]) => {
    const fact = facts[name as keyof RewardFacts];
    if (Array.isArray(expected)) return (expected as unknown[]).includes(fact);
    if (typeof fact !== 'number') return false;
    if ('known' in expected) return true;
    return 'below' in expected ? fact < expected.below : fact >= expected.at_least;
  });
}

export type RewardRow = {
  row: string;
  when: RewardCondition;
  verdict: RewardVerdict;
  /** A run may not override this row. */
  fixed?: true;
  /** The evaluation runs only for the report: it cannot change the verdict of this row. */
  evaluated?: true;
};

/** The first row whose conditions are all true decides. */
const ROWS = [
  { row: 'ungraded', when: { ungraded: [true] }, verdict: { reward: null }, fixed: true },
  { row: 'sandbox_killed', when: { sandbox_killed: [true] }, verdict: { reward: 0 } },
  {
    row: 'policy_slow',
    when: {
      exit_status: ['time_limit'],
      policy_share: { at_least: 0.5 },
      policy_pace: { below: 0.25 },
    },
    verdict: { failed: 'policy_slow' },
  },
  {
    // The policy was not slow, or its speed is unknown. The time limit cut the rollout, so the result proves nothing about the model.
    row: 'policy_time',
    when: { exit_status: ['time_limit'], policy_share: { at_least: 0.5 }, training: [true] },
    verdict: { reward: null },
    evaluated: true,
  },
  { row: 'format_limit', when: { exit_status: ['format_limit'] }, verdict: { reward: 0 } },
  { row: 'turn_limit', when: { exit_status: ['turn_limit'] }, verdict: 'grade' },
  { row: 'context_limit', when: { exit_status: ['context_limit'] }, verdict: 'grade' },
  { row: 'time_limit', when: { exit_status: ['time_limit'] }, verdict: 'grade' },
  { row: 'agent_error', when: { exit_status: ['agent_error'] }, verdict: 'grade' },
  { row: 'token_limit', when: { cut_by_token_limit: [true] }, verdict: 'grade' },
  { row: 'empty_patch', when: { patch_state: ['none', 'empty'] }, verdict: { reward: 0 } },
  { row: 'patch_too_large', when: { patch_state: ['too_large'] }, verdict: { reward: 0 } },
  {
    row: 'patch_not_applied',
    when: { patch_state: ['not_applied'], patch_origin: ['submission', 'given'] },
    verdict: { reward: 0 },
  },
  {
    // Code in the sandbox can cause this failure by replacing git or git's objects.
    row: 'patch_broken',
    when: { patch_state: ['not_applied'] },
    verdict: { reward: 0 },
  },
  { row: 'forged', when: { trust: ['forged'] }, verdict: { reward: 0 } },
  { row: 'evaluation_killed', when: { evaluation: ['sandbox_killed'] }, verdict: { reward: 0 } },
  {
    row: 'timeout',
    when: { evaluation: ['timed_out'], gold_time_share: { below: 0.5 } },
    verdict: { reward: 0 },
  },
  {
    row: 'timeout_of_patch',
    when: { evaluation: ['timed_out'], control_time_share: { below: 0.5 } },
    verdict: { reward: 0 },
  },
  {
    row: 'timeout_unexplained',
    when: { evaluation: ['timed_out'] },
    verdict: { failed: 'evaluation_timeout' },
  },
  {
    row: 'tests_broken',
    when: { evaluation: ['tests_cannot_start'], gold_healthy: [true] },
    verdict: { reward: 0 },
  },
  {
    row: 'tests_broken_by_patch',
    when: { evaluation: ['tests_cannot_start'], tests_start: [true] },
    verdict: { reward: 0 },
  },
  {
    row: 'tests_cannot_start',
    when: { evaluation: ['tests_cannot_start'] },
    verdict: { failed: 'tests_cannot_start' },
  },
  {
    row: 'parser_broken',
    when: { evaluation: ['parser_failed'], gold_healthy: [true] },
    verdict: { reward: 0 },
  },
  {
    row: 'parser_broken_by_patch',
    when: { evaluation: ['parser_failed'], tests_start: [true] },
    verdict: { reward: 0 },
  },
  {
    row: 'parser_failed',
    when: { evaluation: ['parser_failed'] },
    verdict: { failed: 'parser_failed' },
  },
  {
    row: 'not_evaluated',
    when: { evaluation: ['not_run'] },
    verdict: { failed: 'evaluation_lost' },
    fixed: true,
  },
  { row: 'scored', when: { score: { known: true } }, verdict: { reward: 'score' }, fixed: true },
  { row: 'resolved', when: { resolved: [true] }, verdict: { reward: 1 }, fixed: true },
  { row: 'unresolved', when: {}, verdict: { reward: 0 }, fixed: true },
] as const satisfies readonly RewardRow[];

/**
 * How a part is computed from facts. `row`: the reward of the deciding row. `tests`: the share of these tests that passed, only where the
 * deciding row is graded, else 0. `share`: of two counts, or 1 if the condition is true. `when`: 1 if the condition is true, else 0.
 * `soft`: 0 up to the first number of tokens of the weight, 1 from the second on, linear between (DAPO, section 3.4). `count`: the number.
 */
export type PartRule =
  | { row: true }
  | { tests: 'fail_to_pass' | 'pass_to_pass' }
  | { share: 'malformed_answers'; of: 'turns'; or: RewardCondition }
  | { when: RewardCondition }
  | { soft: 'sequence_tokens' }
  | { count: 'turns' };

const PARTS = {
  resolved: { row: true },
  f2p: { tests: 'fail_to_pass' },
  p2p: { tests: 'pass_to_pass' },
  format: { share: 'malformed_answers', of: 'turns', or: { exit_status: ['format_limit'] } },
  invalid_patch: { when: { patch_state: ['not_applied', 'too_large'] } },
  length: { soft: 'sequence_tokens' },
  turns: { count: 'turns' },
  submitted: { when: { exit_status: ['submitted'] } },
} as const satisfies Record<RewardPart, PartRule>;

/** Rows that decide by the tests of the patch. */
const GRADED = ['scored', 'resolved', 'unresolved'] as const;

/** Names for several rows: a run can set `on_limit: zero`. */
const GROUPS = {
  on_limit: ['turn_limit', 'context_limit', 'time_limit', 'policy_time', 'token_limit'],
  overlong: ['context_limit', 'token_limit'],
} as const;

export type RewardRowName = (typeof ROWS)[number]['row'];

export const REWARD_ROWS: readonly RewardRow[] = ROWS;
export const REWARD_GROUPS: Readonly<Record<string, readonly string[]>> = GROUPS;

export const REWARD_PART_RULES: Readonly<Record<RewardPart, PartRule>> = PARTS;
export const GRADED_ROWS: readonly string[] = GRADED;

const NAME = 'swefarm-reward-2';

/** Name and hash (first 16 hex digits of the sha256 of the table's canonical JSON), as written into runs and results. */
export const REWARD_TABLE: { readonly name: string; readonly hash: string } = {
  name: NAME,
  hash: createHash('sha256')
    .update(canonicalJson({ name: NAME, groups: GROUPS, rows: ROWS, parts: PARTS, graded: GRADED }))
    .digest('hex')
    .slice(0, 16),
};

function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`).join(',')}}`;
}
