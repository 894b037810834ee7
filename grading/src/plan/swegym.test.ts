/**
 * SWE-Gym's eleven repositories as its fork of the harness grades them: every version that the fork's table knows has a plan,
 * others are refused by name, and a log in each repository's own form is read to a verdict.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { fromTable, ran } from '../instance.fixture.ts';
import { gradeEvaluation } from '../report/grade.ts';
import { planEvaluation } from './plan.ts';
import { knownRepos, knownVersions } from './specs.ts';

/** Repositories as in the rows of SWE-Gym. */
const REPOS = [
  'getmoto/moto',
  'pandas-dev/pandas',
  'python/mypy',
  'Project-MONAI/MONAI',
  'dask/dask',
  'iterative/dvc',
  'conan-io/conan',
  'pydantic/pydantic',
  'facebookresearch/hydra',
  'bokeh/bokeh',
  'modin-project/modin',
] as const;
type Repo = (typeof REPOS)[number];

const CASES = `diff --git a/test-data/unit/check-crates.test b/test-data/unit/check-crates.test
--- a/test-data/unit/check-crates.test
+++ b/test-data/unit/check-crates.test
@@ -1,2 +1,6 @@
 [case testCrateOld]
+[case testCrateHolds]
+x = 1
+[case testCrateBursts]
+y = x
 z = y
`;

/** Tests, a data file that no test command names, and for mypy cases in a data file. */
function testPatchOf(repo: Repo): string {
  const { file } = LOGS[repo];
  if (repo === 'python/mypy') return CASES;
  return `diff --git a/${file} b/${file}
--- a/${file}
+++ b/${file}
@@ -1 +1,2 @@
 import crate
+import lid
diff --git a/docs/changes.md b/docs/changes.md
--- a/docs/changes.md
+++ b/docs/changes.md
@@ -1 +1 @@
-a
+b
`;
}

const row = (repo: Repo, version: string) =>
  fromTable({
    repo,
    version,
    family: 'swegym',
    test_patch: testPatchOf(repo),
    FAIL_TO_PASS: [LOGS[repo].passed[0]],
    PASS_TO_PASS: [LOGS[repo].passed[1]],
  });

/** The outcomes in the log of each repository in `fixtures/swegym`: names as in the datasets, cut at the first blank. */
const LOGS: Record<Repo, { file: string; passed: [string, string]; others: Record<string, string> }> = {
  'getmoto/moto': {
    file: 'tests/test_crates/test_crates.py',
    passed: [
      'tests/test_crates/test_crates.py::test_put_crate',
      'tests/test_crates/test_crates.py::test_put_in_region[eu',
    ],
    others: {
      'tests/test_crates/test_crates.py::test_move': 'XFAIL',
      'tests/test_crates/test_crates.py::test_list_in_region': 'FAILED',
      '[1]': 'SKIPPED',
      is: 'PASSED',
    },
  },
  'pandas-dev/pandas': {
    file: 'pandas/tests/crates/test_weigh.py',
    passed: [
      'pandas/tests/crates/test_weigh.py::TestWeigh::test_sum[Int64]',
      'pandas/tests/crates/test_weigh.py::TestWeigh::test_sum[datetime64[ns,',
    ],
    others: {
      'pandas/tests/crates/test_weigh.py::test_unit[kg]': 'PASSED',
      'pandas/tests/crates/test_weigh.py::test_empty': 'PASSED',
      'pandas/tests/crates/test_weigh.py::test_door': 'ERROR',
      'pandas/tests/crates/test_weigh.py::test_mean[python-skipna=True]': 'FAILED',
    },
  },
  'python/mypy': {
    file: 'test-data/unit/check-crates.test',
    passed: [
      'mypy/test/testcheck.py::TypeCheckSuite::check-crates.test::testCrateHolds',
      'mypy/test/testcheck.py::TypeCheckSuite::check-crates.test::testCrateOld',
    ],
    others: { 'mypy/test/testcheck.py::TypeCheckSuite::check-crates.test::testCrateBursts': 'FAILED' },
  },
  'Project-MONAI/MONAI': {
    file: 'tests/test_crate_transform.py',
    passed: [
      'tests/test_crate_transform.py::TestCrateTransform::test_shape_0',
      'tests/test_crate_transform.py::TestCrateTransform::test_value_2_tensor_cpu',
    ],
    others: {
      'tests/test_crate_transform.py::TestCrateTransform::test_shape_1_spacing': 'FAILED',
      '[1]': 'SKIPPED',
    },
  },
  'dask/dask': {
    file: 'dask/crates/tests/test_stack.py',
    passed: [
      'dask/crates/tests/test_stack.py::test_lift[numpy]',
      'dask/crates/tests/test_stack.py::test_none[None-chunks1]',
    ],
    others: {
      'dask/crates/tests/test_stack.py::test_later': 'XFAIL',
      'dask/crates/tests/test_stack.py::test_chunks': 'FAILED',
      '[1]': 'SKIPPED',
    },
  },
  'iterative/dvc': {
    file: 'tests/func/test_crate.py',
    passed: ['tests/func/test_crate.py::test_add', 'tests/func/test_crate.py::test_push[ssh://user@host/a'],
    others: {
      'tests/func/test_crate.py::test_pull[s3]': 'ERROR',
      'tests/func/test_crate.py::test_lock': 'FAILED',
      'dvc.crate:crate.py:12': 'ERROR',
    },
  },
  'conan-io/conan': {
    file: 'conans/test/unittests/crate_test.py',
    passed: [
      'conans/test/unittests/crate_test.py::CrateTest::test_export',
      'conans/test/unittests/crate_test.py::test_settings[Windows-Visual',
    ],
    others: {
      'conans/test/unittests/crate_test.py::CrateTest::test_import': 'FAILED',
      '[1]': 'SKIPPED',
      the: 'ERROR:',
    },
  },
  'pydantic/pydantic': {
    file: 'tests/test_crates.py',
    passed: ['tests/test_crates.py::test_holds', 'tests/test_crates.py::test_repr'],
    others: {
      'tests/test_crates.py::test_strict': 'XFAIL',
      'tests/test_crates.py::test_bursts[10': 'FAILED',
    },
  },
  'facebookresearch/hydra': {
    file: 'tests/test_crate.py',
    passed: [
      'tests/test_crate.py::test_compose[strict=False]',
      "tests/test_crate.py::test_override[key={a:10,b:'x",
    ],
    others: {
      'tests/test_crate.py::test_sweep[a=1,2]': 'XFAIL',
      'tests/test_crate.py::test_compose[strict=True]': 'FAILED',
    },
  },
  'bokeh/bokeh': {
    file: 'tests/unit/bokeh/models/test_crates.py',
    passed: [
      'tests/unit/bokeh/models/test_crates.py::Test_Crate::test_basic',
      'tests/unit/bokeh/models/test_crates.py::Test_Crate::test_label[\\u03b1]',
    ],
    others: { 'tests/unit/bokeh/models/test_crates.py::Test_Crate::test_bad_size': 'FAILED' },
  },
  'modin-project/modin': {
    file: 'modin/pandas/test/test_crates.py',
    passed: [
      'modin/pandas/test/test_crates.py::test_sum[over_rows_int-int_data]',
      'modin/pandas/test/test_crates.py::test_apply[<lambda>0-None]',
    ],
    others: { 'modin/pandas/test/test_crates.py::test_sum[over_columns_str-empty_frame]': 'FAILED' },
  },
};

const digest = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 12);

/** Returns the versions of a repository, by a description of the plan that they share. */
function plansOf(repo: Repo): Record<string, string> {
  const versionsByText: Record<string, string[]> = {};
  for (const version of knownVersions('swegym', repo)) {
    const plan = planEvaluation(row(repo, version), 'auto', { recordExitCode: false });
    const { grader, outcomes, script } = plan;
    const command = script.split('\n').find((line) => line.startsWith('pytest'));
    const parser = outcomes.from === 'log' ? `${outcomes.dialect}/${outcomes.parser}` : outcomes.from;
    const text = `${grader} ${parser} ${digest(plan)}: ${command}`;
    versionsByText[text] = [...(versionsByText[text] ?? []), version];
  }
  return Object.fromEntries(
    Object.entries(versionsByText).map(([text, versions]) => [text, versions.join(' ')]),
  );
}

test("the fork's table has these repositories, and one that SWE-Gym left out", () => {
  expect(new Set(knownRepos('swegym'))).toEqual(
    new Set([...REPOS.map((repo) => repo.toLowerCase()), 'hypothesisworks/hypothesis']),
  );
});

describe.each(REPOS)('%s', (repo) => {
  const { file, passed, others } = LOGS[repo];
  const log = readFileSync(
    new URL(`../../fixtures/swegym/${repo.replace('/', '__')}.log`, import.meta.url),
    'utf8',
  );
  const [version = ''] = knownVersions('swegym', repo);

  test('every version of the table has a plan', () => {
    expect(knownVersions('swegym', repo).length).toBeGreaterThan(5);
    expect(plansOf(repo)).toMatchSnapshot();
  });

  test('a version that the table lacks is refused by name', () => {
    for (const unknown of ['99.1', '', 'constructor', `${version} `])
      expect(() => planEvaluation(row(repo, unknown))).toThrow(
        `depot__crate-7: version "${unknown}" of ${repo} is not in the swegym table (known: ${version}, `,
      );
  });

  test('its tests are named by the test patch, without what is no test', () => {
    const { script } = planEvaluation(row(repo, version));
    const [command] = script.split('\n').filter((line) => line.startsWith('pytest'));
    expect(command?.endsWith(repo === 'python/mypy' ? CASE_NAMES : ` ${file}`)).toBe(true);
    expect(command).not.toContain('changes.md');
  });

  test('its log is read to the status of each test, and to a verdict', () => {
    const instance = row(repo, version);
    const grade = (text: string, changes = {}) =>
      gradeEvaluation({ ...instance, ...changes }, planEvaluation(instance), ran(text), instance.patch);
    const report = grade(log);
    expect(report).toMatchObject({ grader: 'swegym', evaluation: 'completed', resolved: true });
    const wanted = { ...Object.fromEntries(passed.map((name) => [name, 'PASSED'])), ...others };
    expect(report.status_map).toEqual(wanted);
    const [failed = ''] = Object.keys(others).filter((name) => others[name] === 'FAILED');
    expect(grade(log, { FAIL_TO_PASS: [passed[0], failed] }).resolved).toBe(false);
    expect(grade(log.replaceAll('Applied patch', 'Could not apply')).resolved).toBe(false);
  });
});

const CASE_NAMES = ' "testCrateOld or testCrateHolds or testCrateBursts"';

type Facts = { test_cmd: string; install?: string; eval_commands?: string[]; log_parser: string };
const GIVEN = new URL('../../../../shared/grading/specs.json', import.meta.url);
test('the table is that of the fork: commands, installation and parser of every version', ({ skip }) => {
  skip(!existsSync(GIVEN), '../shared/grading/specs.json is not beside the repository');
  const { swegym_fork: fork } = JSON.parse(readFileSync(GIVEN, 'utf8')) as {
    swegym_fork: Record<string, Record<string, Facts>>;
  };
  for (const repo of REPOS) {
    const versions = fork[repo.toLowerCase()] ?? {};
    expect(new Set(knownVersions('swegym', repo))).toEqual(new Set(Object.keys(versions)));
    for (const [version, facts] of Object.entries(versions)) {
      const plan = planEvaluation(row(repo, version), 'auto', { recordExitCode: false });
      const lines = plan.script.split('\n');
      expect(lines.filter((line) => line.startsWith(`${facts.test_cmd} `))).toHaveLength(1);
      for (const line of [...(facts.eval_commands ?? []), ...(facts.install ? [facts.install] : [])])
        expect(plan.script, `${repo} ${version}`).toContain(`\n${line}\n`);
      expect(plan.outcomes).toMatchObject({ dialect: 'swegym', parser: facts.log_parser });
    }
  }
});
