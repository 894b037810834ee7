/**
 * Evaluates a resolved patch again when it has signs of forgery or is drawn for the audit: without the files that could decide outcomes,
 * and with counted tests that must fail. The official verdict does not change; the findings are in `report.trust`.
 */
import { randomInt } from 'node:crypto';
import { hasOutcomes, hidesFailures, makeTestsFail, showsFailures } from '@swefarm/grading';
import type { Report } from '@swefarm/shared';
import type { Threads } from '../threads/pool.ts';
import type { TaskOutput } from '../threads/tasks.ts';
import type { CleanRunDeps, Work } from './work.ts';

/** Default of `auditShare`. The audit finds forgeries that no pattern matches. */
const AUDIT_SHARE = 0.01;
const INSPECT_MS = 30_000;

export type ConfirmDeps = Pick<CleanRunDeps, 'container' | 'removals' | 'signal'> & {
  threads: Pick<Threads, 'run'>;
  /** Share of the resolved patches without a sign of forgery that are evaluated again; absent: 1 %. */
  auditShare?: number;
  /** Share of the time limit that the gold patch is known to need; null: not known. */
  goldTimeShare: number | null;
  /** Evaluates another plan or patch, with the limits of the first evaluation. Throws RolloutFailure when the node is at fault. */
  again: (changed: Partial<Work>) => Promise<Report>;
};

/** Evaluates the patch again if needed and adds the findings to `report.trust`. Throws errors of `deps.again` and `deps.container`. */
export async function confirm(work: Work, report: Report, deps: ConfirmDeps): Promise<void> {
  const found = await inspect(work, deps);
  const proves = work.plan.verdict.rule !== 'fail_only' && !isContradicted(report);
  if (report.trust.level === 'clean' && proves && !(await isDrawn(found, deps))) return;
  let { patch } = work;
  if (found.rest && report.trust.level === 'suspicious') {
    const files = found.rest.files.join(', ').slice(0, 1000);
    const end = await passesWithout(work, found.rest.patch, deps);
    if (end === 'fails')
      return forged(report, `the tests do not pass without what the patch brings to decide them: ${files}`);
    if (end === 'unknown') note(report, `without ${files} neither the patch nor gold comes to an end`);
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

function note(report: Report, reason: string): void {
  if (report.trust.level === 'clean') report.trust.level = 'suspicious';
  report.trust.reasons.push(reason);
}

type Found = TaskOutput<'inspect'>;

/** A patch that takes too long to parse, or that ends the thread, counts as a patch with signs of forgery. */
async function inspect({ instance, patch }: Work, { threads }: ConfirmDeps): Promise<Found> {
  try {
    return await threads.run('inspect', { instance, patch }, { timeoutMs: INSPECT_MS });
  } catch {
    return { why: 'the patch cannot be read in time', modules: [], answers: true, rest: null };
  }
}

/**
 * Returns whether the exit code reports a failure, but the log reports none, or one of a test that it also reports as passed. Runners other
 * than pytest may do so without a forgery, so the second evaluation decides.
 */
function isContradicted({ test_exit_code, status_map, tests_status }: Report): boolean {
  if (test_exit_code === null || test_exit_code === 0 || status_map === null) return false;
  const counted = [tests_status?.FAIL_TO_PASS, tests_status?.PASS_TO_PASS].flatMap(
    (list) => list?.success ?? [],
  );
  // From `FAIL: test (module.Class)`, the reader of unittest's log takes only the name of the test.
  const passed = new Set(counted.map((id) => id.split(' ', 1)[0]));
  const failed = Object.entries(status_map).filter(([, status]) => /^(?:FAILED|ERROR|fail)/.test(status));
  return failed.length === 0 || failed.some(([name]) => passed.has(name));
}

async function isDrawn({ why, modules }: Found, deps: ConfirmDeps): Promise<boolean> {
  if (why !== null) return true;
  if (modules.length > 0 && (await namesTaken(modules, deps))) return true;
  return randomInt(1_000_000) < (deps.auditShare ?? AUDIT_SHARE) * 1_000_000;
}

/** Evaluates the patch without its suspicious files. `unknown`: the tests then have no outcomes, and with gold they do not pass either. */
async function passesWithout(
  { instance }: Work,
  rest: string,
  { again, goldTimeShare }: ConfirmDeps,
): Promise<'passes' | 'fails' | 'unknown'> {
  const seen = await again({ patch: rest });
  if (seen.resolved) return seen.trust.level === 'forged' ? 'fails' : 'passes';
  if (hasOutcomes(seen) || goldTimeShare !== null || instance.patch === '') return 'fails';
  return (await again({ patch: instance.patch })).resolved ? 'fails' : 'unknown';
}

/** Makes counted tests fail. If the log shows the failures with gold but not with the patch, the patch hides them. */
async function failOnPurpose(
  { instance, plan, patch }: Work,
  report: Report,
  change: 'opposites' | 'values',
  { again }: ConfirmDeps,
): Promise<void> {
  const changed = makeTestsFail(plan, instance, randomInt, change);
  if (!changed) return;
  const seen = await again({ plan: changed.plan, patch });
  if (showsFailures(seen, changed.ids)) return;
  const end = hasOutcomes(seen) ? 'are not seen to fail' : `come to no end (${seen.evaluation})`;
  if (instance.patch === '')
    return note(report, `tests made to fail ${end}, and the row has no gold to compare with`);
  const gold = await again({ plan: changed.plan, patch: instance.patch });
  if (hidesFailures(seen, gold, changed.ids))
    return forged(report, `tests made to fail ${end} beside the patch, and do fail beside gold`);
  if (!hasOutcomes(seen))
    note(report, `tests made to fail ${end}, and beside gold they are not seen to fail either`);
}

const FIND_MS = 60_000;
const FIND_BYTES = 1024 * 1024;
/** Paths directly below a folder from which Python imports. */
const IMPORTABLE = /\/(?:lib\/python[\d.]+|lib-dynload|(?:site|dist)-packages)\/[^/]+$/;
/** Prints paths with the given names. Does not search inside packages, because only top-level modules can be replaced. */
const FIND =
  'find / -maxdepth 9 \\( -path /proc -o -path /sys -o -path /testbed \\) -prune -o -path "*-packages/*" \\( "$@" \\) -prune -print -o -path "*-packages/*" -prune -o -path "*/lib/python*" \\( "$@" \\) -print';

/**
 * Tests in a clean container whether new modules would replace modules of Python or installed modules with the same name. Returns true also
 * when `find` fails. Throws the errors of a container start.
 */
async function namesTaken(names: readonly string[], { container: start, removals, signal }: ConfirmDeps) {
  const container = await start();
  try {
    const patterns = names.flatMap((name, index) => [
      ...(index > 0 ? ['-o'] : []),
      ...['-name', name, '-o', '-name', `${name}.py`, '-o', '-name', `${name}.*.so`],
    ]);
    const { output, exitCode } = await container.exec(['/bin/sh', '-c', FIND, 'sh', ...patterns], {
      timeoutMs: FIND_MS,
      maxOutputBytes: FIND_BYTES,
      standing: 'clean',
      signal,
    });
    const paths = output.toString('utf8').split('\n');
    // find exits with 1 when it may not read a folder.
    return exitCode === null || exitCode > 1 || paths.some((path) => IMPORTABLE.test(path));
  } finally {
    await removals.remove(container);
  }
}
