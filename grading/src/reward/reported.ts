import type { Report, RewardFacts } from '@swefarm/shared';

/**
 * Returns the facts with the values of the report, which replace the values of an earlier report. Some harnesses (SWE-bench-Live, SWE-bench
 * Pro) run the tests even if the patch did not apply. Then the tests decide, and for the reward the patch counts as applied, although the
 * report has `not_applied`.
 */
export function withReport(facts: RewardFacts, report: Report): RewardFacts {
  const { score: _score, reward_components: _parts, ...rest } = facts;
  const ranUnapplied = report.patch_state === 'not_applied' && report.evaluation !== 'not_run';
  return {
    ...rest,
    patch_state: ranUnapplied ? 'applied' : report.patch_state,
    evaluation: report.evaluation,
    resolved: report.resolved,
    trust: report.trust.level,
    ...(report.score === undefined ? {} : { score: report.score }),
    ...(report.reward_components ? { reward_components: report.reward_components } : {}),
  };
}
