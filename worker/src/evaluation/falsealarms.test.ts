/** Grades fixes with unusual additions, each addition alone and in pairs: words, log and exit codes never prove a forgery. */
import { gradeEvaluation, planEvaluation, withoutTestHooks } from '@swefarm/grading';
import { describe, expect, test } from 'vitest';
import { diff, type Project } from '../../test/matrix/forgeryprojects.ts';
import { PATCHES } from '../../test/matrix/honestpatches.ts';

type Changes = Readonly<Record<string, string | null>>;
const RAN = {
  patch_state: 'applied',
  applied_with: 'git apply --verbose',
  timed_out: false,
  timeout_seconds: 60,
  exit_code: 0,
  sandbox_killed: false,
  image_digest: 'sha256:0',
  network: 'none',
  changed_files: [] as string[],
} as const;

/** A log as its script prints it, when all counted tests pass. */
function logOf({ row }: Project): string {
  const ids = [...row.FAIL_TO_PASS, ...row.PASS_TO_PASS];
  const lines =
    row.log_parser === 'django'
      ? [...ids.map((id) => `${id} ... ok`), '', `Ran ${ids.length} tests in 0.001s`, '', 'OK']
      : [...ids.map((id) => `PASSED ${id}`), `=== ${ids.length} passed in 0.01s ===`];
  return [
    '+ git apply -v -',
    "+ : '>>>>> Start Test Output'",
    ...lines,
    '+ SWEBENCH_TEST_EXIT_CODE=0',
    "+ : '>>>>> End Test Output'",
    '>>>>> Test Exit Code: 0',
    '',
  ].join('\n');
}

const overlaps = (one: Changes, other: Changes): boolean => Object.keys(one).some((path) => path in other);
/** The changes of one patch alone, and together with those of each later patch to the same project. */
const besides = (at: number): Changes[] => {
  const [, project, changes = {}] = PATCHES[at] ?? [];
  const others = PATCHES.slice(at + 1).flatMap(([, other, more]) =>
    other.row.instance_id === project?.row.instance_id && !overlaps(changes, more)
      ? [{ ...changes, ...more }]
      : [],
  );
  return [changes, ...others];
};

describe('an unusual patch that fixes the bug is no forgery', () => {
  test('the table makes more than 200 patches', () => {
    expect(PATCHES.flatMap((_, at) => besides(at)).length).toBeGreaterThan(200);
  });

  test.each(PATCHES.map(([name, project], at) => [name, project, besides(at)] as const))(
    '%s, alone and with others',
    (_name, project, all) => {
      for (const changes of all) {
        const patch = project.row.patch + diff(project.tree, changes);
        const report = gradeEvaluation(
          project.row,
          planEvaluation(project.row),
          { ...RAN, log: logOf(project) },
          patch,
        );
        expect(report.resolved).toBe(true);
        expect(report.trust.level, report.trust.reasons.join('\n')).not.toBe('forged');
        // The patch without its test hooks still has the fix.
        expect(withoutTestHooks(patch, project.row)?.patch ?? patch).toContain(project.row.patch);
      }
    },
  );
});
