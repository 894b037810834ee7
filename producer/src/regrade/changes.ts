/** Describes the changes of a regrade, in a line for each rollout whose verdict, reward or report changed. */
import { type OutputLine, type ReportSummary, renderReward } from '@swefarm/trajectories';

export type GradeVerdict = Pick<OutputLine, 'outcome' | 'resolved' | 'reward'> & {
  reward_row: string | null;
  report: Pick<ReportSummary, 'fail_to_pass' | 'pass_to_pass' | 'evaluation' | 'trust'> | null;
};

/** Returns a line with the changes; null: nothing changed. */
export function describeChange(name: string, before: GradeVerdict, after: GradeVerdict): string | null {
  const parts = [
    change('', renderVerdict(before), renderVerdict(after)),
    change('reward ', rewardOf(before), rewardOf(after)),
    ...(before.report && after.report
      ? [
          change('evaluation ', before.report.evaluation, after.report.evaluation),
          change('FAIL_TO_PASS ', countOf(before.report.fail_to_pass), countOf(after.report.fail_to_pass)),
          change('PASS_TO_PASS ', countOf(before.report.pass_to_pass), countOf(after.report.pass_to_pass)),
          change('trust ', before.report.trust.level, after.report.trust.level),
        ]
      : []),
  ].filter((part) => part !== null);
  return parts.length === 0 ? null : `${name}: ${parts.join(', ')}`;
}

const change = (what: string, before: string, after: string): string | null =>
  before === after ? null : `${what}${before} → ${after}`;

function renderVerdict({ outcome, resolved }: GradeVerdict): string {
  if (outcome !== 'judged') return outcome;
  return resolved === null ? 'no verdict' : resolved ? 'resolved' : 'unresolved';
}

const rewardOf = ({ reward, reward_row: row }: GradeVerdict): string =>
  `${renderReward(reward)}${row === null ? '' : ` (${row})`}`;

const countOf = (bucket: { success: number; failure: number } | null): string =>
  bucket ? `${bucket.success}/${bucket.success + bucket.failure}` : 'unread';
