/**
 * Evaluates one patch in a clean container, without the agent's shell, container or files. By the rules of the plan, the verdict follows
 * from the log of the tests and the files that they left; exit codes come from the runtime.
 */
import { gradeEvaluation, isNoPatch, unreadReport } from '@swefarm/grading';
import { type InstancePlan, type Report, RolloutFailure, SwefarmError } from '@swefarm/shared';
import type { Threads } from '../threads/pool.ts';
import type { GradeInput } from '../threads/tasks.ts';
import { noRun, runOnce } from './cleanrun.ts';
import { type ConfirmDeps, confirm } from './confirm.ts';
import type { Control } from './control.ts';
import type { EvaluationLock } from './evaluationlock.ts';
import { type ProgramDeps, runProgram } from './program.ts';
import type { CleanRunDeps, Ran, Work } from './work.ts';

/** Gold that needs less than this share of the time limit does not time out under any load of the node. */
const FAR_FROM_LIMIT = 0.2;
/** Limit of the harness on a patch, in bytes; the harness does not try to apply a larger patch. */
const MAX_PATCH_BYTES = 10 * 1024 * 1024;
const PARSE_MS = 60_000;

export type EvaluationDeps = CleanRunDeps &
  Pick<ConfirmDeps, 'auditShare' | 'goldTimeShare'> &
  Pick<ProgramDeps, 'startProgram'> & {
    threads: Threads;
    evaluationLock: EvaluationLock;
    /** Whether to evaluate an empty patch too, as for agents without turns, whose reports need the status of each test. */
    evaluateEmpty: boolean;
    /** Why the tests run: for a verdict, to confirm a verdict, as evidence about other patches, or for feedback on a submit. */
    purpose: 'patch' | 'second' | 'control' | 'feedback';
    count: (labels: Pick<EvaluationDeps, 'purpose'>) => void;
    /** Evidence of other trees; absent or null: none, because this is a control evaluation or no control is made. */
    control?: Control | null;
  };

/** `startSeconds`: start of the clean container; `testsSeconds`: duration of the eval script. Both are of the last run. */
export type Evaluated = { report: Report } & Pick<Ran, 'log' | 'collected' | 'startSeconds' | 'testsSeconds'>;

/** Throws RolloutFailure `evaluation_lost`, `node_disk`, `node_memory`, `parse_timeout` or `setup_failed`, and errors of the runtime. */
export async function evaluate(
  { patch, ...given }: Omit<Work, 'patch'> & { patch: string | null },
  deps: EvaluationDeps,
): Promise<Evaluated> {
  const { instance, plan } = given;
  const skipped = skipReason(patch, plan, deps.evaluateEmpty);
  if (skipped) {
    const facts = { ...noRun(plan, deps), patch_state: skipped, log: null };
    const report = gradeEvaluation(instance, plan, facts, patch ?? '');
    return { report, log: null, startSeconds: 0, testsSeconds: 0 };
  }
  const work = { ...given, patch: patch ?? '' };
  const evaluated = await runTests(work, deps);
  const { report } = evaluated;
  if (report.resolved && report.trust.level !== 'forged') {
    const again = async (changed: Partial<Work>): Promise<Report> =>
      (await runTests({ ...work, ...changed }, { ...deps, purpose: 'second', control: null })).report;
    await confirm(work, report, { ...deps, again });
  }
  return evaluated;
}

/** Runs the tests and grades their log. Tests that time out may run once more, alone on the node. Throws the errors of {@link evaluate}. */
export async function runTests(work: Work, deps: EvaluationDeps): Promise<Evaluated> {
  deps.threads.expect();
  const run = () => {
    deps.count({ purpose: deps.purpose });
    return runOnce(work, deps);
  };
  let ran = await deps.evaluationLock.shared(run, deps.signal);
  const { harbor } = work.instance;
  // A shared verifier of a Harbor task cannot run twice: only one container has the work of the agent.
  const repeatable = harbor === undefined || harbor.verifier.separate !== undefined;
  if (ran.facts.timed_out && repeatable && !(await isGoldFarFromLimit(deps)))
    ran = await deps.evaluationLock.alone(run, deps.signal);
  let report = await grade(work, ran, deps);
  if (ran.disk === 'full' && !report.resolved)
    throw new RolloutFailure('node_disk', 'the disk was full at the end of the tests');
  if (ran.disk === 'filled' && !report.resolved) {
    ran.facts.sandbox_killed = true;
    report = await grade(work, ran, deps);
  }
  const { log, collected, startSeconds, testsSeconds } = ran;
  return { report, log, ...(collected ? { collected } : {}), startSeconds, testsSeconds };
}

/** Returns whether gold needs so little time that other load on the node cannot have caused a timeout. */
async function isGoldFarFromLimit({ goldTimeShare, control }: EvaluationDeps): Promise<boolean> {
  if (goldTimeShare !== null) return goldTimeShare < FAR_FROM_LIMIT;
  const known = await control?.timeShare();
  return known?.isGold === true && known.share !== null && known.share < FAR_FROM_LIMIT;
}

function skipReason(
  patch: string | null,
  plan: InstancePlan,
  evaluateEmpty: boolean,
): 'none' | 'empty' | 'too_large' | null {
  if (patch === null) return 'none';
  if (isNoPatch(patch, plan)) return evaluateEmpty && plan.blank !== 'ends' ? null : 'empty';
  return Buffer.byteLength(patch) > MAX_PATCH_BYTES ? 'too_large' : null;
}

async function grade(work: Work, { facts, log }: Ran, deps: EvaluationDeps): Promise<Report> {
  const { outcomes: source } = work.plan;
  if (source.from === 'program' && facts.program === undefined && log !== null && haveTestsRun(facts))
    facts.program = await runProgram(source, { log, files: facts.files ?? {} }, deps);
  return readReport({ ...work, facts, log }, deps.threads);
}

const haveTestsRun = (facts: Ran['facts']): boolean =>
  (facts.patch_state === 'applied' || facts.patch_state === 'empty' || facts.ran_unapplied === true) &&
  !facts.timed_out &&
  !facts.sandbox_killed &&
  facts.blocked_by === undefined;

/**
 * Parses a log into a report, in a thread. The patch may have written the log, so an unreadable log gets a verdict and no error.
 * Tries twice, the second time with twice the limit. If only an empty log is readable, the log is at fault. Throws RolloutFailure
 * `parse_timeout` when even an empty log takes too long, because then the node is at fault.
 */
export async function readReport(
  evaluation: GradeInput,
  threads: Pick<Threads, 'run'>,
  limitMs = PARSE_MS,
): Promise<Report> {
  for (const timeoutMs of [limitMs, 2 * limitMs]) {
    const report = await threads.run('grade', evaluation, { timeoutMs }).catch(() => null);
    if (report) return report;
  }
  const empty = { ...evaluation, log: Buffer.alloc(0) };
  const reading = threads.run('grade', empty, { timeoutMs: PARSE_MS });
  const bare = await reading.catch((error: unknown) => {
    if (error instanceof SwefarmError && error.code === 'thread_timeout') return null;
    throw error;
  });
  if (bare) return unreadReport(bare);
  const why = `not even an empty test log could be read in ${PARSE_MS / 1000} s`;
  throw new RolloutFailure('parse_timeout', why);
}
