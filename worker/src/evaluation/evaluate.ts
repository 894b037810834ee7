/**
 * Evaluates one patch in a clean container, by plain exec: it never uses the agent's shell, container or files.
 * The verdict follows from what the tests left by the plan's rules; exit codes come from the runtime.
 */
import { randomBytes } from 'node:crypto';
import { addCanaryTest, gradeEvaluation, isNoPatch, withoutTestHooks } from '@swefarm/grading';
import { type Instance, type InstancePlan, type Report, RolloutFailure } from '@swefarm/shared';
import type { Threads } from '../threads/pool.ts';
import { type CleanRunDeps, noRun, type Ran, runOnce } from './cleanrun.ts';
import type { EvaluationLock } from './evaluationlock.ts';
import { type ProgramDeps, runProgram } from './program.ts';
import { readReport } from './readreport.ts';

/** Share of the time limit: gold that needs less is far from the limit, whatever runs beside it. */
const FAR_FROM_LIMIT = 0.2;
/** The harness's own limit on a patch; it does not try to apply a larger one. */
const MAX_PATCH_BYTES = 10 * 1024 * 1024;

export type EvaluationDeps = CleanRunDeps &
  Pick<ProgramDeps, 'startProgram'> & {
    threads: Threads;
    evaluationLock: EvaluationLock;
    /** Evaluate an empty patch too (golden, noop and preflight need the status of each test on the bare tree). */
    evaluateEmpty: boolean;
    /** Share of the time limit that gold is known to need; null: not known. */
    goldTimeShare: number | null;
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
  deps.threads.expect();
  const run = () => runOnce(instance, plan, patch ?? '', deps);
  let ran = await deps.evaluationLock.shared(run, deps.signal);
  // Gold is far from the limit here, so no slow neighbour could make a comparable patch meet it.
  const hangs = deps.goldTimeShare !== null && deps.goldTimeShare < FAR_FROM_LIMIT;
  if (ran.facts.timed_out && !hangs) ran = await deps.evaluationLock.alone(run, deps.signal);
  let report = await grade(instance, plan, patch ?? '', ran, deps);
  if (ran.disk === 'full' && !report.resolved)
    throw new RolloutFailure('node_disk', 'the disk was full at the end of the tests');
  if (ran.disk === 'filled' && !report.resolved) {
    ran.facts.sandbox_killed = true;
    report = await grade(instance, plan, patch ?? '', ran, deps);
  }
  if (report.resolved && report.trust.level === 'suspicious') {
    await confirm(instance, plan, patch ?? '', report, deps);
  }
  return { report, log: ran.log, startSeconds: ran.startSeconds, testsSeconds: ran.testsSeconds };
}

/**
 * Evaluates a resolved patch that may decide tests itself a second time: without the means it brings in its own files, and
 * beside a test that must fail. The official verdict stays; `report.trust` holds the findings.
 */
async function confirm(
  instance: Instance,
  plan: InstancePlan,
  patch: string,
  report: Report,
  deps: EvaluationDeps,
): Promise<void> {
  const again = async (other: InstancePlan, tried: string): Promise<Report | null> => {
    const ran = await deps.evaluationLock.shared(() => runOnce(instance, other, tried, deps), deps.signal);
    return ran.facts.timed_out ? null : grade(instance, other, tried, ran, deps);
  };
  const forged = (reason: string): void => {
    report.trust.level = 'forged';
    report.trust.reasons.push(reason);
  };
  const rest = withoutTestHooks(patch, instance);
  if (rest && (await again(plan, rest.patch))?.resolved === false) {
    forged(`the tests do not pass without what the patch brings to decide them: ${rest.files.join(', ')}`);
    return;
  }
  const trap = addCanaryTest(plan, instance, `test_${randomBytes(6).toString('hex')}`);
  if (!trap) return;
  const seen = await again(trap.plan, patch);
  if (!seen || trap.fails(seen)) return;
  const gold = await again(trap.plan, instance.patch);
  if (gold && trap.fails(gold))
    forged('a test made to fail does not fail beside the patch, and does beside gold');
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
