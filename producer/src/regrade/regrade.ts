import {
  decideReward,
  type GraderChoice,
  gradeEvaluation,
  planEvaluation,
  REWARD_TABLE,
  withReport,
} from '@swefarm/grading';
import { type Instance, type Report, type RewardFacts, SwefarmError } from '@swefarm/shared';
import {
  type OutputLine,
  type RewardRule,
  rewardFields,
  summariseReport,
  withReward,
} from '@swefarm/trajectories';
import type { StoredLog } from './sources.ts';

/**
 * Grades a stored log again. The new report includes the `trust` reasons of the stored report, because some of them cannot be found in the
 * log. Returns the stored report if the log does not have the outcomes of the tests.
 *
 * @throws SwefarmError `instance_invalid` when the grader rejects the row, or neither the log nor a stored report has the outcomes
 */
export function regradeLog(
  instance: Instance,
  grader: GraderChoice,
  { log, patch, facts }: StoredLog,
  before: Report | null,
): Report {
  const plan = planEvaluation(instance, grader);
  const { outcomes } = plan;
  // Result files and exit codes of tests are not stored.
  if (outcomes.from !== 'log' && !(outcomes.from === 'exit_code' && outcomes.pattern !== undefined)) {
    if (before) return before;
    const why = `its outcomes come from "${outcomes.from}", which is not stored with its log: run the evaluation again`;
    throw new SwefarmError('instance_invalid', `${instance.instance_id}: ${why}`);
  }
  const notApplied = facts.patch_state === 'not_applied' && !facts.ran_unapplied;
  const report = gradeEvaluation(instance, plan, { ...facts, log: notApplied ? null : log }, patch);
  return before ? { ...report, trust: worseTrust(before.trust, report.trust) } : report;
}

const LEVELS = ['clean', 'suspicious', 'forged'] as const;

function worseTrust(a: Report['trust'], b: Report['trust']): Report['trust'] {
  const level = LEVELS[Math.max(LEVELS.indexOf(a.level), LEVELS.indexOf(b.level))] ?? 'clean';
  return { level, reasons: [...new Set([...a.reasons, ...b.reasons])] };
}

export type RewardRules = {
  /** The overrides and weights with which the run was rewarded. */
  was: RewardRule;
  now: RewardRule;
};

/**
 * Returns the line with the new report, if any, and the reward of the current table. A cancelled line, and a line that failed for
 * another reason than the reward table, are unchanged. Null: a judged line has no facts.
 *
 * @throws UsageError when the weights need facts that the line does not have
 */
export function rewardLineAgain(
  line: OutputLine,
  report: Report | null,
  rules: RewardRules,
): OutputLine | null {
  if (line.outcome === 'cancelled') return line;
  if (!line.facts) return line.outcome === 'failed' ? line : null;
  if (line.outcome === 'failed') {
    const { row, failure } = decideReward(line.facts, rules.was.overrides);
    if (row === 'not_evaluated' || failure?.class !== line.failure?.class) return line;
  }
  const known = withCounts(line, line.facts);
  const facts = report ? withReport(known, report) : known;
  const fresh = rewardFields(facts, rules.now, line.failure?.attempts ?? 1);
  // For the same failure, the stored message of the worker is more detailed.
  const same = line.failure !== null && fresh.failure?.class === line.failure.class;
  return {
    ...withReward(line, fresh),
    ...(same ? { failure: line.failure, reward_row: line.reward_row } : {}),
    facts,
    report: report ? summariseReport(report) : line.report,
    reward_table: `${REWARD_TABLE.name}:${REWARD_TABLE.hash}`,
  };
}

/** Returns the facts with the counts that lines of earlier versions have outside of their facts. */
function withCounts({ report, turns, exit_status }: OutputLine, facts: RewardFacts): RewardFacts {
  const outside = {
    ...(exit_status === null ? {} : { turns }),
    ...(report && { fail_to_pass: report.fail_to_pass, pass_to_pass: report.pass_to_pass }),
  };
  return { ...facts, ...Object.fromEntries(Object.entries(outside).filter(([name]) => !(name in facts))) };
}
