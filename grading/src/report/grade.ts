/** Makes the report of an evaluation: the official verdict, and how far it can be trusted. */
import type { Instance, Report } from '@swefarm/shared';
import { readsPytest } from '../parsers/pytest.ts';
import type { EvaluationPlan } from '../plan/evaluationplan.ts';
import { evalTypeOf } from '../plan/specs.ts';
import { plainText } from '../text/escapes.ts';
import { universalNewlines } from '../text/pythontext.ts';
import { sessionIn } from '../trust/session.ts';
import { assessTrust, lastExitCode } from '../trust/trust.ts';
import { hasSignOfTests, type Outcomes, readOutcomes } from '../verdict/outcomes.ts';
import { isResolved, type TestsStatus, testsStatus } from '../verdict/testsstatus.ts';

/** What a worker observed of one evaluation. */
export type EvaluationFacts = {
  patch_state: 'none' | 'empty' | 'too_large' | 'applied' | 'not_applied';
  applied_with: string | null;
  /** Merged stdout+stderr of the eval script; null when it did not run. */
  log: string | null;
  timed_out: boolean;
  timeout_seconds: number;
  exit_code: number | null;
  sandbox_killed: boolean;
  image_digest: string | null;
  /** Network of the container in which the tests ran; absent: not known. */
  network?: 'none' | 'egress';
  /** Files that decide outcomes and differ from the image; absent when this was not checked. */
  changed_files?: string[];
  /** Why the check for changed files gave no answer. */
  changes_unknown?: string;
};

/**
 * Pure. `resolved` is false for whatever the harness does not count as resolved (a patch that is empty, too large or does not
 * apply, tests that timed out, a log it cannot read), and null only when no evaluation was requested.
 * `modelPatch` is used for `trust` alone.
 */
export function gradeEvaluation(
  instance: Instance,
  plan: EvaluationPlan,
  facts: EvaluationFacts,
  modelPatch: string | null,
): Report {
  const log = facts.log === null ? null : universalNewlines(facts.log);
  const ran = log !== null && (facts.patch_state === 'applied' || facts.patch_state === 'empty');
  const read = ran && !facts.timed_out ? readOutcomes(plan.grader, plan.parser, log, instance) : null;
  const { outcomes, text } = read?.readable ? read : { outcomes: null, text: null };
  const tests = outcomes && testsStatus(plan.grader, evalTypeOf(instance, plan.grader), outcomes, instance);
  const resolved = facts.patch_state === 'none' && !ran ? null : tests !== null && isResolved(tests);
  return {
    format: 'swefarm-report-1',
    instance_id: instance.instance_id,
    patch_state: facts.patch_state,
    evaluation: ran ? endOf(facts, read, log, plan.parser, evalTypeOf(instance, plan.grader)) : 'not_run',
    resolved,
    tests_status: tests,
    status_map: outcomes && Object.fromEntries(outcomes),
    applied_with: facts.applied_with,
    test_exit_code: ran ? lastExitCode(log) : null,
    grader: plan.grader,
    parser: plan.parser,
    image_digest: facts.image_digest,
    trust: assessTrust({
      instance,
      plan,
      modelPatch,
      log: ran ? log : null,
      outcomes,
      text,
      resolved: resolved === true,
      scriptExitCode: ran && !facts.timed_out && !facts.sandbox_killed ? facts.exit_code : null,
      imageDigest: facts.image_digest,
      egress: instance.needs_egress || facts.network === 'egress',
      changedFiles: facts.changed_files,
      changesUnknown: facts.changes_unknown,
    }),
    ...(read && !read.readable ? { unreadable: read.why } : {}),
  };
}

/**
 * The report for a log that could not be read in time, made from the report of an empty log: not resolved and without a report.json,
 * as when the harness itself raises on the log.
 */
export const unreadReport = (empty: Report): Report => ({
  ...empty,
  evaluation:
    empty.evaluation === 'sandbox_killed' || empty.evaluation === 'timed_out'
      ? empty.evaluation
      : 'completed',
  resolved: false,
  tests_status: null,
  status_map: null,
  unreadable: 'raises',
});

/**
 * How the evaluation ended. A log that the patch's own output made unreadable counts as a regular end; a log without a sign of tests
 * means that they could not start. Where the session shows that all tests were skipped, they did start, and the harness's verdict
 * stands.
 */
function endOf(
  facts: EvaluationFacts,
  read: Outcomes | null,
  log: string,
  parser: string,
  evalType: 'pass_and_fail' | 'fail_only',
): Report['evaluation'] {
  if (facts.timed_out || read === null) return 'timed_out';
  if (facts.sandbox_killed) return 'sandbox_killed';
  if (read.readable && read.outcomes.size > 0) return 'completed';
  const silent =
    read.readable ||
    read.why === 'no_markers' ||
    read.why === 'no_sign_of_tests' ||
    read.why === 'test_patch_not_applied';
  if (!silent) return 'completed';
  if (read.readable && evalType === 'fail_only' && hasSignOfTests(log)) return 'completed';
  const started = (read.readable || read.why === 'no_sign_of_tests') && readsPytest(parser);
  return started && sessionIn(plainText(log)).skippedAll ? 'completed' : 'tests_cannot_start';
}

export type { TestsStatus };
