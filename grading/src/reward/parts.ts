/** Computes the parts of a reward from recorded facts (the rules are in table.ts), and the reward of a run with weights. */
import {
  MOST,
  type PartWeight,
  parseWeights,
  REWARD_PARTS,
  type RewardComponents,
  type RewardFacts,
  type RewardPart,
  type RewardParts,
  UsageError,
} from '@swefarm/shared';
import { GRADED_ROWS, matches, type PartRule, REWARD_PART_RULES } from './table.ts';

/** Decision of the reward table: the row, its reward, and whether the verdict is forged without an override that rewards it. */
type Decided = { row: string; reward: number; forged: boolean };

/** `missing`: facts that the weights need and that these facts lack, because an older version wrote them. */
type Rewarded = {
  reward: number;
  reward_parts: RewardParts;
  reward_components?: RewardComponents;
  missing: string[];
};

/**
 * Returns the parts of the reward and, with weights, the reward: the sum of weight x part over all parts that are known. Parts and
 * components have four decimals, as stored results have, so that the same facts always give the same reward. A forged verdict gains by no part.
 */
export function rewardByParts(facts: RewardFacts, decided: Decided, weights: string | null): Rewarded {
  const weighted = weights === null ? [] : weightsOf(weights);
  const soft = weighted.find(({ part }) => part === 'length')?.soft;
  const values = new Map(
    REWARD_PARTS.map((part) => [part, partOf(REWARD_PART_RULES[part], facts, decided, soft)] as const),
  );
  const known = [...values].flatMap(([part, value]): [RewardPart, number][] =>
    value == null ? [] : [[part, rounded(value)]],
  );
  const reward_parts = Object.fromEntries(known);
  const missing = weighted.flatMap(({ part }) =>
    values.get(part) === undefined ? [factOf(REWARD_PART_RULES[part])] : [],
  );
  if (weights === null) return { reward: decided.reward, reward_parts, missing };
  const components = weighted.flatMap(({ part, weight }): [string, number][] => {
    const value = reward_parts[part];
    if (value === undefined) return [];
    const added = Math.max(-MOST.score, Math.min(rounded(weight * value), MOST.score));
    return [[part, decided.forged ? Math.min(0, added) : added]];
  });
  const sum = components.reduce((total, [, added]) => total + added, 0);
  return { reward: rounded(sum), reward_parts, reward_components: Object.fromEntries(components), missing };
}

/** Returns the weights of a run. Throws UsageError for a text that the schema of the run record refuses. */
function weightsOf(text: string): PartWeight[] {
  const read = parseWeights(text);
  if ('problem' in read) throw new UsageError(`--reward (reward.weights): ${read.problem}`);
  return read.weights;
}

/** Rounds to the four decimals of stored results, without a negative zero. */
const rounded = (value: number): number => Math.round(value * 1e4) / 1e4 + 0;

/** Returns null for a part that is unknown, and undefined if an older version did not record its facts. */
function partOf(
  rule: PartRule,
  facts: RewardFacts,
  { row, reward }: Decided,
  soft: PartWeight['soft'],
): number | null | undefined {
  if ('row' in rule) return reward;
  if ('when' in rule) return matches(rule.when, facts) ? 1 : 0;
  if ('count' in rule) return facts[rule.count];
  if ('tests' in rule) {
    if (!GRADED_ROWS.includes(row)) return 0;
    const tests = facts[rule.tests];
    return tests && share(tests.success, tests.success + tests.failure);
  }
  if ('share' in rule) {
    if (matches(rule.or, facts)) return 1;
    const [count, all] = [facts[rule.share], facts[rule.of]];
    if (count == null) return count;
    return all == null ? all : (share(count, all) ?? 0);
  }
  const tokens = facts[rule.soft];
  if (tokens == null || soft === undefined) return soft === undefined ? null : tokens;
  return Math.max(0, Math.min((tokens - soft.from) / (soft.to - soft.from), 1));
}

const share = (part: number, all: number): number | null => (all === 0 ? null : part / all);

/** Returns the name of the fact on which a part depends. */
const factOf = (rule: PartRule): string => {
  if ('tests' in rule) return rule.tests;
  if ('share' in rule) return rule.share;
  if ('soft' in rule) return rule.soft;
  return 'count' in rule ? rule.count : 'exit_status';
};

/** Facts of a submitted patch that passes all PASS_TO_PASS tests and no other: a comment, for example. */
const NO_FIX: RewardFacts = {
  ...{ exit_status: 'submitted', patch_state: 'applied', patch_origin: 'tree', evaluation: 'completed' },
  ...{ resolved: false, trust: 'clean', cut_by_token_limit: false, policy_share: 0, sandbox_killed: false },
  ...{ gold_healthy: null, gold_time_share: null, ungraded: false },
  ...{ fail_to_pass: { success: 0, failure: 1 }, pass_to_pass: { success: 1, failure: 0 } },
  ...{ turns: 1, malformed_answers: 0, sequence_tokens: 0 },
};

/** Returns warnings about weights that reward a rollout which solves nothing. */
export function weightWarnings(weights: string | null): string[] {
  if (weights === null) return [];
  const reward = (row: string, base: number, changes: Partial<RewardFacts> = {}): number =>
    rewardByParts({ ...NO_FIX, ...changes }, { row, reward: base, forged: false }, weights).reward;
  const empty = reward('empty_patch', 0, { patch_state: 'empty' });
  const noFix = reward('unresolved', 0);
  const fix = reward('resolved', 1, { resolved: true, fail_to_pass: { success: 1, failure: 0 } });
  const advice = 'lower the weights of p2p and submitted, or add a negative weight';
  return [
    ...(empty > 0 ? [`--reward: an empty patch that is submitted at once earns ${empty}: ${advice}`] : []),
    ...(noFix > 0 && noFix !== empty
      ? [`--reward: a patch that fixes nothing and breaks nothing (a comment) earns ${noFix}: ${advice}`]
      : []),
    ...(fix <= noFix
      ? [`--reward: a resolved rollout earns ${fix}, and one that fixes nothing ${noFix}: add resolved=1`]
      : []),
  ];
}
