/** What a report adds to the facts of a reward. */
import type { Report, RewardFacts } from '@swefarm/shared';

/**
 * The facts with what the report tells, in place of what an earlier report told.
 *
 * Some harnesses (SWE-bench-Live, SWE-bench Pro) run the tests also when the patch did not apply, or applied in part: the tests then
 * decide, and to the reward the patch counts as applied. The report still says `not_applied`.
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
