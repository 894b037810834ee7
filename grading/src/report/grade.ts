/** Makes the report of an evaluation: the official verdict, and the trust in this verdict. */
import type { Instance, InstancePlan, Report } from '@swefarm/shared';
import { readsPytest } from '../parsers/pytest.ts';
import { parserOf } from '../plan/plan.ts';
import { plainText } from '../text/escapes.ts';
import { universalNewlines } from '../text/pythontext.ts';
import { sessionIn } from '../trust/session.ts';
import { assessTrust, lastExitCode } from '../trust/trust.ts';
import type { Evidence, Outcomes, ProgramEnd } from '../verdict/evidence.ts';
import { hasSignOfTests } from '../verdict/logs.ts';
import { readOutcomes } from '../verdict/outcomes.ts';
import { judge } from '../verdict/rules.ts';
import { boundStatuses } from './statuses.ts';

/** The observations of a worker about one evaluation. */
export type EvaluationFacts = {
  patch_state: 'none' | 'empty' | 'too_large' | 'applied' | 'not_applied';
  applied_with: string | null;
  /** Merged stdout and stderr of the eval script; null if the script did not run. */
  log: string | null;
  /** Contents of the plan's files that exist, by absolute path. */
  files?: Record<string, string>;
  program?: ProgramEnd;
  /** The step between patch and tests that failed, so that the tests did not run. Patch or instance may be the cause. */
  blocked_by?: string;
  /** Whether no command applied the patch, and the plan ran the tests nevertheless. */
  ran_unapplied?: boolean;
  /** Whether the log exceeds `log_limit` and lacks the middle. */
  log_cut?: boolean;
  timed_out: boolean;
  timeout_seconds: number;
  exit_code: number | null;
  sandbox_killed: boolean;
  image_digest: string | null;
  /** Network of the container in which the tests ran; absent if unknown. */
  network?: 'none' | 'egress';
  /** Files that decide outcomes and differ from the image; absent if the worker did not check. */
  changed_files?: string[];
  /** Why the check for changed files failed. */
  changes_unknown?: string;
};

/**
 * Grades an evaluation. `resolved` is null if there is no patch or the grader gives no verdict, and false if the harness does not count the
 * row as resolved, as for a patch that is too large or does not apply, a timeout, or an unreadable log. `modelPatch` affects only `trust`.
 */
export function gradeEvaluation(
  instance: Instance,
  plan: InstancePlan,
  facts: EvaluationFacts,
  modelPatch: string | null,
): Report {
  const evidence = evidenceIn(facts);
  const log = evidence?.log ?? null;
  const readable = evidence && !facts.timed_out && facts.blocked_by === undefined;
  const read = readable ? readOutcomes(plan, evidence, instance) : null;
  const known = read?.readable ? read : null;
  const outcomes = known?.outcomes ?? null;
  const statuses = outcomes && boundStatuses(outcomes);
  const judged = known && evidence && judge({ read: known, evidence, verdict: plan.verdict, instance });
  const resolved = facts.patch_state === 'none' && !evidence ? null : judged ? judged.resolved : false;
  const cut = isDecidedByCut(facts, read, plan) && resolved !== true;
  return {
    format: 'swefarm-report-1',
    instance_id: instance.instance_id,
    patch_state: facts.patch_state,
    evaluation: log === null ? 'not_run' : cut ? 'parser_failed' : endOf(facts, read, log, plan),
    resolved,
    ...(known?.reward === undefined ? {} : { score: known.reward }),
    ...(read?.parts ? { reward_components: read.parts } : {}),
    tests_status: judged?.tests ?? null,
    status_map: statuses?.map ?? null,
    ...(statuses?.omitted ? { statuses_omitted: statuses.omitted } : {}),
    applied_with: facts.applied_with,
    test_exit_code: log === null ? null : lastExitCode(log),
    grader: plan.grader,
    parser: parserOf(plan),
    image_digest: facts.image_digest,
    trust: assessTrust({
      instance,
      plan,
      modelPatch,
      log,
      outcomes,
      text: known?.text ?? null,
      resolved: resolved === true,
      score: known?.reward,
      scriptExitCode: evidence && !facts.timed_out && !facts.sandbox_killed ? facts.exit_code : null,
      imageDigest: facts.image_digest,
      egress: instance.needs_egress || facts.network === 'egress',
      logCut: facts.log_cut === true,
      changedFiles: facts.changed_files,
      changesUnknown: facts.changes_unknown,
    }),
    ...(read && !read.readable ? { unreadable: whyUnreadable(read) } : {}),
    ...(facts.blocked_by === undefined ? {} : { unreadable: facts.blocked_by }),
    ...(cut ? { unreadable: LOG_CUT } : {}),
  };
}

const LOG_CUT = 'the test log is longer than log_limit, so the outcomes in its middle are not known';

/** Whether the log lacks the middle, so that a verdict would be wrong: the tests in the middle would count as missing. */
const isDecidedByCut = (
  facts: EvaluationFacts,
  read: Outcomes | null,
  { outcomes: { from } }: InstancePlan,
): boolean =>
  facts.log_cut === true &&
  (from === 'log' || from === 'program') &&
  read !== null &&
  !facts.sandbox_killed &&
  facts.blocked_by === undefined;

const whyUnreadable = ({ why, detail }: Extract<Outcomes, { readable: false }>): string =>
  detail === undefined ? why : `${why}: ${detail}`;

/** Returns null if the tests did not run. */
function evidenceIn(facts: EvaluationFacts): Evidence | null {
  const ran =
    facts.patch_state === 'applied' || facts.patch_state === 'empty' || facts.ran_unapplied === true;
  if (facts.log === null || !ran) return null;
  return {
    log: universalNewlines(facts.log),
    exitCode: facts.exit_code,
    files: new Map(Object.entries(facts.files ?? {})),
    program: facts.program,
  };
}

/**
 * Returns the report for a log that could not be read in time. `empty` is the report for an empty log. The result is not resolved and leads
 * to no report.json, as if the harness had raised an exception.
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
 * Returns how the evaluation ended. If the output of the patch made the log unreadable, the evaluation counts as completed. A log without
 * a sign of tests means that the tests could not start, unless the session of pytest shows that all tests were skipped.
 */
function endOf(
  facts: EvaluationFacts,
  read: Outcomes | null,
  log: string,
  plan: InstancePlan,
): Report['evaluation'] {
  if (facts.blocked_by !== undefined) return 'tests_cannot_start';
  if (facts.timed_out || read === null) return 'timed_out';
  if (facts.sandbox_killed) return 'sandbox_killed';
  const known =
    read.readable && (read.outcomes.size > 0 || read.reward !== undefined || read.passed !== undefined);
  if (known) return 'completed';
  if (!read.readable && read.why === 'parser_failed') return 'parser_failed';
  const silent =
    read.readable ||
    read.why === 'no_reward' ||
    read.why === 'no_markers' ||
    read.why === 'no_sign_of_tests' ||
    read.why === 'test_patch_not_applied';
  if (!silent) return 'completed';
  if (read.readable && plan.verdict.rule === 'fail_only' && hasSignOfTests(log)) return 'completed';
  const started = (read.readable || read.why === 'no_sign_of_tests') && readsPytest(parserOf(plan));
  return started && sessionIn(plainText(log)).skippedAll ? 'completed' : 'tests_cannot_start';
}
