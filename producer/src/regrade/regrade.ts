/** Grades a stored log again, and rewards a stored line again: nothing runs, and what was recorded is not touched. */
import {
  decideReward,
  type GraderChoice,
  gradeEvaluation,
  planEvaluation,
  REWARD_TABLE,
  type RewardOverrides,
} from '@swefarm/grading';
import type { Instance, Report, RewardFacts } from '@swefarm/shared';
import { type OutputLine, summariseReport } from '../output/line.ts';
import { rewardFields } from '../output/rewardfields.ts';
import type { StoredLog } from './sources.ts';

/**
 * The report that the grader gives today. `before` is the stored one: what was seen in the container, and cannot be seen
 * in a log, stays among the reasons of `trust`.
 *
 * @throws SwefarmError `instance_invalid` when the grader cannot take the row
 */
export function regradeLog(
  instance: Instance,
  grader: GraderChoice,
  { log, patch, facts }: StoredLog,
  before: Report | null,
): Report {
  const plan = planEvaluation(instance, grader);
  const notApplied = facts.patch_state === 'not_applied';
  const report = gradeEvaluation(instance, plan, { ...facts, log: notApplied ? null : log }, patch);
  return before ? { ...report, trust: worseTrust(before.trust, report.trust) } : report;
}

const LEVELS = ['clean', 'suspicious', 'forged'] as const;

function worseTrust(a: Report['trust'], b: Report['trust']): Report['trust'] {
  const level = LEVELS[Math.max(LEVELS.indexOf(a.level), LEVELS.indexOf(b.level))] ?? 'clean';
  return { level, reasons: [...new Set([...a.reasons, ...b.reasons])] };
}

export type RewardRules = {
  /** Of the run, as it was submitted. */
  was: RewardOverrides;
  now: RewardOverrides;
};

/**
 * The line with a new report, when there is one, and the reward of today's table. A line that infrastructure failed or a
 * person cancelled stays as it is, for the table never decided about it; null when the line holds no facts.
 */
export function rewardLineAgain(
  line: OutputLine,
  report: Report | null,
  rules: RewardRules,
): OutputLine | null {
  if (line.outcome === 'cancelled') return line;
  if (!line.facts) return line.outcome === 'failed' ? line : null;
  if (line.outcome === 'failed' && !failedByTable(line, line.facts, rules.was)) return line;
  const facts: RewardFacts = report
    ? {
        ...line.facts,
        patch_state: report.patch_state,
        evaluation: report.evaluation,
        resolved: report.resolved,
        trust: report.trust.level,
      }
    : line.facts;
  const fresh = rewardFields(facts, rules.now, line.failure?.attempts ?? 1);
  // The same failure keeps the worker's message.
  const same = line.failure !== null && fresh.failure?.class === line.failure.class;
  return {
    ...line,
    ...fresh,
    ...(same ? { failure: line.failure, reward_row: line.reward_row } : {}),
    facts,
    report: report ? summariseReport(report) : line.report,
    reward_table: `${REWARD_TABLE.name}:${REWARD_TABLE.hash}`,
  };
}

function failedByTable(line: OutputLine, facts: RewardFacts, overrides: RewardOverrides): boolean {
  const decision = decideReward(facts, overrides);
  return decision.row !== 'not_evaluated' && decision.failure?.class === line.failure?.class;
}
