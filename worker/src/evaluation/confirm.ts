/**
 * Evaluates a resolved patch again when something in it could decide tests: without what it brings for that in files of its own, and
 * beside counted tests that must fail. The official verdict stays; `report.trust` holds the findings.
 */
import { randomInt } from 'node:crypto';
import { hasOutcomes, hidesFailures, makeTestsFail, showsFailures } from '@swefarm/grading';
import type { Instance, InstancePlan, Report } from '@swefarm/shared';
import type { Threads } from '../threads/pool.ts';
import type { TaskOutput } from '../threads/tasks.ts';
import type { CleanRunDeps } from './cleanrun.ts';
import { namesTaken } from './namestaken.ts';

/** Of resolved patches without any sign: what no pattern knows is found in training, at this rate. */
const AUDIT_SHARE = 0.01;
const INSPECT_MS = 30_000;

export type ConfirmDeps = Pick<CleanRunDeps, 'container' | 'removals' | 'signal'> & {
  threads: Pick<Threads, 'run'>;
  /** Share of the resolved patches without a sign that are evaluated again; absent: 1 %. */
  auditShare?: number;
  /** Gold is known to need little of the time limit: a second evaluation that meets the limit needs no control. */
  goldTimeShare: number | null;
  /**
   * Evaluates by another plan or another patch, with the limits of the first evaluation.
   *
   * @throws RolloutFailure when the node, and not the code, is at fault
   */
  again: (plan: InstancePlan, patch: string) => Promise<Report>;
};

export type Resolved = { instance: Instance; plan: InstancePlan; patch: string };

/** Throws what `again` throws: a second evaluation that the node lost is no evidence. */
export async function confirm(work: Resolved, report: Report, deps: ConfirmDeps): Promise<void> {
  const found = await inspect(work, deps);
  const proves = work.plan.verdict.rule !== 'fail_only' && !isContradicted(report);
  if (report.trust.level === 'clean' && proves && !(await isDrawn(found, deps))) return;
  let { patch } = work;
  if (found.rest && report.trust.level === 'suspicious') {
    const files = found.rest.files.join(', ').slice(0, 1000);
    const held = await holdsWithout(work, found.rest.patch, deps);
    if (held === 'fails')
      return forged(report, `the tests do not pass without what the patch brings to decide them: ${files}`);
    if (held === 'unknown') note(report, `without ${files} neither the patch nor gold comes to an end`);
    else patch = found.rest.patch;
  }
  const tried = { ...work, patch };
  await failOnPurpose(tried, report, 'opposites', deps);
  if (found.answers && report.trust.level !== 'forged') await failOnPurpose(tried, report, 'values', deps);
}

function forged(report: Report, reason: string): void {
  report.trust.level = 'forged';
  report.trust.reasons.push(reason);
}

/** What could not be shown. A clean verdict becomes a suspicious one. */
function note(report: Report, reason: string): void {
  if (report.trust.level === 'clean') report.trust.level = 'suspicious';
  report.trust.reasons.push(reason);
}

type Found = TaskOutput<'inspect'>;

/** A patch that takes too long to read, or that ends the thread, counts as one with signs. */
async function inspect({ instance, patch }: Resolved, { threads }: ConfirmDeps): Promise<Found> {
  try {
    return await threads.run('inspect', { instance, patch }, { timeoutMs: INSPECT_MS });
  } catch {
    return { why: 'the patch cannot be read in time', modules: [], answers: true, rest: null };
  }
}

/**
 * Whether the tests ended with an exit code of a failure, and the log has none, or one of a test that it also reports as passed. Runners other than
 * pytest end so for honest reasons too: the second evaluation decides. A rule that counts missing tests as passed proves even less.
 */
function isContradicted({ test_exit_code, status_map, tests_status }: Report): boolean {
  if (test_exit_code === null || test_exit_code === 0 || status_map === null) return false;
  const counted = [tests_status?.FAIL_TO_PASS, tests_status?.PASS_TO_PASS].flatMap(
    (list) => list?.success ?? [],
  );
  // The summary of unittest names a test without its class.
  const passed = new Set(counted.map((id) => id.split(' ', 1)[0]));
  const failed = Object.entries(status_map).filter(([, status]) => /^(?:FAILED|ERROR|fail)/.test(status));
  return failed.length === 0 || failed.some(([name]) => passed.has(name));
}

async function isDrawn({ why, modules }: Found, deps: ConfirmDeps): Promise<boolean> {
  if (why !== null) return true;
  if (modules.length > 0 && (await namesTaken(modules, deps))) return true;
  return randomInt(1_000_000) < (deps.auditShare ?? AUDIT_SHARE) * 1_000_000;
}

/** `unknown`: the tests come to no end, and beside gold neither. */
async function holdsWithout(
  { instance, plan }: Resolved,
  rest: string,
  { again, goldTimeShare }: ConfirmDeps,
): Promise<'holds' | 'fails' | 'unknown'> {
  const seen = await again(plan, rest);
  if (seen.resolved) return seen.trust.level === 'forged' ? 'fails' : 'holds';
  if (hasOutcomes(seen) || goldTimeShare !== null || instance.patch === '') return 'fails';
  return (await again(plan, instance.patch)).resolved ? 'fails' : 'unknown';
}

/** Counted tests are made to fail: their failures must be seen beside the patch, where they are seen beside gold. */
async function failOnPurpose(
  { instance, plan, patch }: Resolved,
  report: Report,
  change: 'opposites' | 'values',
  { again }: ConfirmDeps,
): Promise<void> {
  const trap = makeTestsFail(plan, instance, randomInt, change);
  if (!trap) return;
  const seen = await again(trap.plan, patch);
  if (showsFailures(seen, trap.ids)) return;
  const end = hasOutcomes(seen) ? 'are not seen to fail' : `come to no end (${seen.evaluation})`;
  if (instance.patch === '')
    return note(report, `tests made to fail ${end}, and the row has no gold to compare with`);
  const gold = await again(trap.plan, instance.patch);
  if (hidesFailures(seen, gold, trap.ids))
    return forged(report, `tests made to fail ${end} beside the patch, and do fail beside gold`);
  if (!hasOutcomes(seen))
    note(report, `tests made to fail ${end}, and beside gold they are not seen to fail either`);
}
