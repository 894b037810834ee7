/** Artificial rows in the exact form of each family, and their files. */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const COMMIT = '1234567890abcdef1234567890abcdef12345678';
const FIX = 'fedcba0987654321fedcba0987654321fedcba09';
const PATCH = `diff --git a/calc.py b/calc.py
--- a/calc.py
+++ b/calc.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a - b
+    return a + b
`;
const TEST_PATCH = `diff --git a/tests/test_calc.py b/tests/test_calc.py
--- a/tests/test_calc.py
+++ b/tests/test_calc.py
@@ -1,2 +1,5 @@
 from calc import add
 
+
+def test_add():
+    assert add(1, 2) == 3
`;

/** SWE-bench's own columns, which most families have. */
const COMMON = {
  instance_id: 'acme__calc-7',
  repo: 'acme/calc',
  base_commit: COMMIT,
  patch: PATCH,
  test_patch: TEST_PATCH,
  problem_statement: 'add subtracts.',
  hints_text: '',
  created_at: '2025-01-02T03:04:05Z',
  version: '0.3',
  FAIL_TO_PASS: ['tests/test_calc.py::test_add'],
  PASS_TO_PASS: ['tests/test_calc.py::test_zero'],
};

const range = (start: number, length: number) => ({ start, length });
const PARSED_COMMIT = {
  file_diffs: [
    {
      old_file_content: 'def add(a, b):\n    return a - b\n',
      new_file_content: 'def add(a, b):\n    return a + b\n',
      header: { file: { path: 'calc.py' }, misc_line: null },
      index_line: { old_commit_hash: '1111111', new_commit_hash: '2222222', mode: '100644' },
      is_binary_file: false,
      binary_line: null,
      minus_file: { path: 'a/calc.py' },
      plus_file: { path: 'b/calc.py' },
      hunks: [
        {
          descriptor: { old_range: range(1, 2), new_range: range(1, 2), section: '' },
          line_group: {
            all_lines: [
              { content: 'def add(a, b):', type: 'context' },
              { content: '    return a - b', type: 'deleted' },
              { content: '    return a + b', type: 'added' },
            ],
          },
        },
      ],
    },
  ],
  old_commit_hash: COMMIT,
  new_commit_hash: FIX,
  commit_message: 'Add instead of subtracting',
  commit_date: '2025-01-02T03:04:05+00:00',
  metadata: {},
};

const PRO_ID = `instance_acme__calc-${FIX}-vnan`;
const PRO = {
  ...{ instance_id: PRO_ID, repo: 'acme/calc', base_commit: COMMIT, patch: PATCH, test_patch: TEST_PATCH },
  problem_statement: 'add subtracts.',
  requirements: 'add(a, b) is the sum of a and b.',
  interface: 'No new interfaces are introduced.',
  repo_language: 'python',
  fail_to_pass: "['tests/test_calc.py::test_add', 'tests/test_calc.py::test_it\\'s']",
  pass_to_pass: '["tests/test_calc.py::test_zero"]',
  selected_test_files_to_run: "['tests/test_calc.py', 'tests/test_more.py']",
  before_repo_set_cmd: `git reset --hard ${COMMIT}\ngit clean -fd \ngit checkout ${COMMIT} \ngit checkout ${FIX} -- tests/test_calc.py`,
  dockerhub_tag: `acme.calc-acme__calc-${FIX}`,
};
const RUN_SCRIPT = '#!/bin/bash\npytest -v $(tr , " " <<<"$1")\n';
const PARSER = 'import json, sys\njson.dump({"tests": []}, open(sys.argv[3], "w"))\n';

/** Writes the files of SWE-bench Pro's row into `folder`, with the folders of SWE-bench Pro's repository. */
export async function writeProFiles(folder: string): Promise<void> {
  const files = {
    [`run_scripts/${PRO_ID}/run_script.sh`]: RUN_SCRIPT,
    [`run_scripts/${PRO_ID}/parser.py`]: PARSER,
    [`dockerfiles/base_dockerfile/${PRO_ID}/Dockerfile`]:
      'FROM debian\nENV PYTEST_ADDOPTS="--tb=short -v"\nENV LANG en_US.UTF-8\n',
    [`dockerfiles/instance_dockerfile/${PRO_ID}/Dockerfile`]: 'ENV UV_HTTP_TIMEOUT=60\nRUN true\n',
  };
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
}

const status = (run: string, test: string, fix: string) => ({ run, test, fix });
const result = (passed_tests: string[]) => ({
  ...{ passed_count: passed_tests.length, failed_count: 0, skipped_count: 0 },
  ...{ passed_tests, failed_tests: [], skipped_tests: [] },
});
const MULTI = {
  org: 'acme',
  repo: 'Calc',
  number: 7,
  state: 'closed',
  title: 'Add instead of subtracting',
  body: 'Changes the sign in calc.js.',
  lang: 'javascript',
  base: { label: 'acme:main', ref: 'main', sha: COMMIT },
  resolved_issues: [{ number: 5, title: 'add subtracts', body: 'add(1, 2) gives -1.' }],
  fix_patch: PATCH,
  test_patch: TEST_PATCH,
  fixed_tests: { adds: status('NONE', 'NONE', 'PASS') },
  p2p_tests: { zero: status('PASS', 'PASS', 'PASS') },
  f2p_tests: {},
  s2p_tests: {},
  n2p_tests: { adds: status('NONE', 'NONE', 'PASS') },
  run_result: result(['zero']),
  test_patch_result: result(['zero']),
  fix_patch_result: result(['zero', 'adds']),
};
const column = (tests: Record<string, ReturnType<typeof status>>) => ({
  name: Object.keys(tests),
  run: Object.values(tests).map(({ run }) => run),
  test: Object.values(tests).map(({ test }) => test),
  fix: Object.values(tests).map(({ fix }) => fix),
});

const INSTALL_CONFIG = {
  python: '3.9',
  install: 'pip install -e .',
  packages: 'requirements.txt',
  pip_packages: ['pytest'],
  pre_install: null,
  reqs_path: null,
  env_vars: null,
  log_parser: 'parse_log_pytest',
  test_cmd: 'pytest --no-header -rA --tb=line',
};

const LIVE = {
  ...COMMON,
  pull_number: '7',
  language: 'C',
  rebuild_cmds: ['cd /testbed &amp;&amp; make'],
  test_cmds: ['cd /testbed ; make check 2>&amp;1 | tee report.txt'],
  print_cmds: ['cat report.txt'],
  log_parser: 'def parser(log: str) -> dict[str, str]:\n    return {}\n',
  docker_image: 'starryzhang/sweb.eval.x86_64.acme_1776_calc-7',
};

const INTERNAL = {
  ...PRO,
  instance_id: 'acme__calc-7',
  'run_script.sh': RUN_SCRIPT,
  'parsing_script.py': PARSER,
};

/** A row as NeMo Gym posts it. */
const wrapped = (instance_id: string, dataset_name: string, row: Record<string, unknown>) => ({
  responses_create_params: {
    input: [],
    metadata: {
      ...{ instance_id, base_commit: COMMIT, dataset_name, split: 'train' },
      ...{ problem_statement: 'add subtracts.', golden_patch: PATCH },
      instance_dict: JSON.stringify(row),
    },
  },
});

/** Rows by family and form. SWE-bench Pro's row needs {@link writeProFiles}. */
export const FAMILY_ROWS: Readonly<Record<string, Record<string, unknown>>> = {
  'r2e-gym': {
    repo_name: 'calc',
    docker_image: `namanjain12/calc_final:${FIX}`,
    commit_hash: FIX,
    parsed_commit_content: JSON.stringify(PARSED_COMMIT),
    execution_result_content: '{}',
    expected_output_json: JSON.stringify({ 'TestCalc.test_add': 'PASSED', test_known: 'FAILED' }),
    modified_files: ['calc.py'],
    prompt: 'The commit adds.',
    problem_statement: 'Before.\n[ISSUE]\nadd subtracts.\n[/ISSUE]\nBehind.',
  },
  'swe-rebench': {
    ...COMMON,
    environment_setup_commit: null,
    install_config: INSTALL_CONFIG,
    docker_image: 'swerebench/sweb.eval.x86_64.acme_1776_calc-7',
    FAIL_TO_FAIL: [],
    PASS_TO_FAIL: [],
  },
  'swe-rebench-v2': {
    ...COMMON,
    created_at: 1_735_787_045_000,
    language: 'c',
    interface: 'None.',
    pr_description: 'Changes the sign.',
    install_config: {
      base_image_name: 'c:latest',
      docker_specs: null,
      install: ['make'],
      log_parser: 'parse_log_jq',
      log_parsers: null,
      test_cmd: ['make check', 'cat test-suite.log'],
    },
    image_name: 'docker.io/swerebenchv2/acme-calc:7-1234567',
  },
  'swe-bench-pro': PRO,
  'multi-swe': MULTI,
  'multi-swe, columns of tests': {
    ...MULTI,
    instance_id: 'acme__Calc-7',
    number: '7',
    fixed_tests: column(MULTI.fixed_tests),
    p2p_tests: column(MULTI.p2p_tests),
    f2p_tests: column({}),
    s2p_tests: column({}),
    n2p_tests: column(MULTI.n2p_tests),
    resolved_issues: { number: [5], title: ['add subtracts'], body: ['add(1, 2) gives -1.'] },
  },
  'swe-bench-live': LIVE,
  'swe-bench-live, Python': {
    ...COMMON,
    test_cmds: ['pytest -rA'],
    log_parser: 'pytest',
  },
  'scale-swe': {
    instance_id: 'acme_calc_pr7',
    user: 'acme',
    repo: 'calc',
    language: 'python',
    workdir: '/workspace/calc',
    image_url: 'registry.example/scale/acme_calc:pr7',
    patch: PATCH,
    pr_commit: FIX,
    parent_commit: COMMIT,
    problem_statement: 'add subtracts.',
    f2p_patch: TEST_PATCH,
    f2p_script: 'def test_more():\n    pass\n',
    FAIL_TO_PASS: '["tests/test_calc.py::test_add"]',
    PASS_TO_PASS: 'tests/test_calc.py::test_zero',
    pre_commands: 'git checkout -q -b scaleswe\\n',
  },
  'swe-lego': {
    ...COMMON,
    image_name: 'jierun/sweb.eval.x86_64.acme_1776_calc-7',
    install_config: INSTALL_CONFIG,
    test_cmd: 'LANG=C.UTF-8 pytest -rA -p no:cacheprovider tests/test_calc.py',
    messages: [],
  },
  'open-swe': {
    ...COMMON,
    image_name: 'gair/openswe:acme-calc-7',
    eval_script: `#!/bin/bash\ncd /testbed\ngit apply <<'EOF'\n${TEST_PATCH}EOF\npytest\necho "OPENSWE_EXIT_CODE=$?"\n`,
  },
  'r2e-gym, as NeMo Gym posts it': wrapped(`acme__calc-${FIX}`, 'R2E-Gym/R2E-Gym-Subset', {
    repo: 'acme/calc',
    docker_image: `namanjain12/calc_final:${FIX}`,
    FAIL_TO_PASS: ['r2e_tests/test_1.py::test_add'],
    PASS_TO_PASS: ['r2e_tests/test_1.py::test_zero'],
  }),
  'nemotron, nv-internal-1': wrapped('acme__calc-7', 'nv-internal-1', INTERNAL),
};

const { dockerhub_tag: _tag, ...UNTAGGED } = INTERNAL;

/** Well-formed rows that cannot be graded, by reason. */
export const UNGRADABLE_ROWS: Readonly<Record<string, Record<string, unknown>>> = {
  'the scripts of SWE-bench Pro are not here': PRO,
  'a log parser that its harness has not': {
    ...COMMON,
    install_config: { ...INSTALL_CONFIG, log_parser: 'parse_log_of_nobody' },
  },
  'nv-internal-1 rows name no image': UNTAGGED,
  'test ids that were cut short': {
    ...COMMON,
    image_name: 'jierun/sweb.eval.x86_64.acme_1776_calc-7',
    test_cmd: 'pytest -rA',
    FAIL_TO_PASS: ['tests/test_calc.py::test_add[1 '],
  },
  'Windows instances need Windows': {
    ...LIVE,
    docker_image: 'starryzhang/sweb.eval.win.x86_64.acme_1776_calc-7',
  },
  'its eval_script applies the fix itself': {
    ...COMMON,
    image_name: 'gair/openswe:acme-calc-7',
    eval_script: `cd /testbed\ngit apply <<'EOF'\n${PATCH}EOF\npytest\necho "OPENSWE_EXIT_CODE=$?"\n`,
  },
  'no tests': { ...COMMON, image: 'acme/calc:7', test_cmd: 'pytest', FAIL_TO_PASS: [], PASS_TO_PASS: '[]' },
  'no test that only the fix passes': { ...LIVE, FAIL_TO_PASS: [] },
  'no issue text': { ...MULTI, resolved_issues: [] },
  'Python rows of Multi-SWE-bench have no known image': { ...MULTI, lang: 'python' },
  'SWE-Gym Raw rows have no image and no verified tests': {
    ...COMMON,
    FAIL_TO_PASS: [],
    PASS_TO_PASS: [],
  },
  'SWE-Pivot rows are single steps without a repository: nothing can be run': {
    uuid: 'one',
    responses_create_params: { input: [] },
    expected_action: { type: 'function_call', name: 'edit', arguments: '{}' },
  },
  'deepswe rows have their verifier on a server of NVIDIA': {
    task_id: 'one',
    image: 'registry.example/deepswe:one',
    responses_create_params: { input: [] },
    verifier_metadata: { task_id: 'one' },
  },
  'swerl_gen rows ask for one answer of text, and their images are files of NVIDIA': {
    ...COMMON,
    repo: 'getmoto/moto',
    relevant_file_contents: { 'calc.py': 'def add(a, b): ...' },
    metadata: { image: '/images/acme__calc-7.sif', mode: 'eval' },
  },
  'swe-bench-ext rows are read by parsers that are not established here': {
    ...COMMON,
    test_framework: 'jest',
    test_command: 'npx jest',
  },
};
