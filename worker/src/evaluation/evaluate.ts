/**
 * Evaluates one patch in a clean container, by plain exec: it never uses the agent's shell, container or files.
 * The verdict follows from what the tests left by the plan's rules; exit codes come from the runtime.
 */
import { gradeEvaluation, isNoPatch } from '@swefarm/grading';
import { type Instance, type InstancePlan, type Report, RolloutFailure } from '@swefarm/shared';
import type { Threads } from '../threads/pool.ts';
import { type CleanRunDeps, noRun, type Ran, runOnce } from './cleanrun.ts';
import { type ConfirmDeps, confirm } from './confirm.ts';
import type { Control } from './control.ts';
import type { EvaluationLock } from './evaluationlock.ts';
import { type ProgramDeps, runProgram } from './program.ts';
import { readReport } from './readreport.ts';

/** Share of the time limit: gold that needs less is far from the limit, whatever runs beside it. */
const FAR_FROM_LIMIT = 0.2;
/** The harness's own limit on a patch; it does not try to apply a larger one. */
const MAX_PATCH_BYTES = 10 * 1024 * 1024;

export type EvaluationDeps = CleanRunDeps &
  Pick<ConfirmDeps, 'auditShare'> &
  Pick<ProgramDeps, 'startProgram'> & {
    threads: Threads;
    evaluationLock: EvaluationLock;
    /** Evaluate an empty patch too (golden, noop and preflight need the status of each test on the bare tree). */
    evaluateEmpty: boolean;
    /** Share of the time limit that gold is known to need; null: not known. */
    goldTimeShare: number | null;
    /** Why the tests run: for a verdict, to confirm one, or as evidence beside other patches. */
    purpose: 'patch' | 'second' | 'control';
    /** Counts each run of tests. */
    count: (labels: Pick<EvaluationDeps, 'purpose'>) => void;
    /** Tells what other trees need; absent: it is a control evaluation itself, or none is made. */
    control?: Control | null;
  };

/** `startSeconds`: until the clean container was ready; `testsSeconds`: the eval script. Both are of the last run, when it ran twice. */
export type Evaluated = { report: Report; log: Buffer | null; startSeconds: number; testsSeconds: number };

/** Throws RolloutFailure evaluation_lost, node_disk, parse_timeout, setup_failed, or whatever the runtime throws at start. */
export async function evaluate(
  instance: Instance,
  plan: InstancePlan,
  patch: string | null,
  deps: EvaluationDeps,
): Promise<Evaluated> {
  const skipped = skipReason(patch, plan, deps.evaluateEmpty);
  if (skipped) {
    const facts = { ...noRun(plan, deps), patch_state: skipped, log: null };
    const report = gradeEvaluation(instance, plan, facts, patch ?? '');
    return { report, log: null, startSeconds: 0, testsSeconds: 0 };
  }
  const evaluated = await runTests(instance, plan, patch ?? '', deps);
  const { report } = evaluated;
  if (report.resolved && report.trust.level !== 'forged') {
    const again = async (other: InstancePlan, tried: string): Promise<Report> =>
      (await runTests(instance, other, tried, { ...deps, purpose: 'second', control: null })).report;
    await confirm({ instance, plan, patch: patch ?? '' }, report, { ...deps, again });
  }
  return evaluated;
}

/** Runs the tests, once more alone when they timed out, and grades their log. Throws as {@link evaluate} does. */
export async function runTests(
  instance: Instance,
  plan: InstancePlan,
  patch: string,
  deps: EvaluationDeps,
): Promise<Evaluated> {
  deps.threads.expect();
  const run = () => {
    deps.count({ purpose: deps.purpose });
    return runOnce(instance, plan, patch, deps);
  };
  let ran = await deps.evaluationLock.shared(run, deps.signal);
  if (ran.facts.timed_out && !(await isGoldFarFromLimit(deps)))
    ran = await deps.evaluationLock.alone(run, deps.signal);
  let report = await grade(instance, plan, patch, ran, deps);
  if (ran.disk === 'full' && !report.resolved)
    throw new RolloutFailure('node_disk', 'the disk was full at the end of the tests');
  if (ran.disk === 'filled' && !report.resolved) {
    ran.facts.sandbox_killed = true;
    report = await grade(instance, plan, patch, ran, deps);
  }
  return { report, log: ran.log, startSeconds: ran.startSeconds, testsSeconds: ran.testsSeconds };
}

/** Then no slow neighbour could make a comparable patch meet the limit. */
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

async function grade(
  instance: Instance,
  plan: InstancePlan,
  patch: string,
  { facts, log }: Ran,
  deps: EvaluationDeps,
): Promise<Report> {
  const { outcomes: source } = plan;
  if (source.from === 'program' && facts.program === undefined && log !== null && haveTestsRun(facts))
    facts.program = await runProgram(source, { log, files: facts.files ?? {} }, deps);
  return readReport({ instance, plan, patch, facts, log }, deps.threads);
}

/** To an end of their own. */
const haveTestsRun = (facts: Ran['facts']): boolean =>
  (facts.patch_state === 'applied' || facts.patch_state === 'empty' || facts.ran_unapplied === true) &&
  !facts.timed_out &&
  !facts.sandbox_killed &&
  facts.blocked_by === undefined;
