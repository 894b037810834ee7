/**
 * Reads rows of R2E-Gym. The image contains the repository before the fix and hidden tests; the row has the status of each test after the
 * fix. Source of the rules: R2E-Gym 69bc953 and agentica-project/R2E-Gym 353348a; NeMo Gym 07d6b0d for rows with lists of tests.
 */
import { asObject, type FieldReader, type Row } from '../fields/fields.ts';
import { withTag } from '../fields/image.ts';
import type { Family, InstanceDraft, RowContext } from './family.ts';
import { ParsedCommitError, patchOfParsedCommit } from './parsedcommit.ts';
import { attempts, readTests, SWEBENCH_APPLY, shownId, word } from './planned.ts';

export const r2eGym: Family = {
  name: 'r2e-gym',
  columns: [
    ...['repo_name', 'commit_hash', 'expected_output_json', 'parsed_commit_content'],
    ...['fail_to_pass', 'pass_to_pass', 'eval_script'],
  ],
  // R2E-Gym also publishes copies of SWE-bench rows. They have neither expected outputs nor a `TAGGED` image, and are read as SWE-bench.
  fits: (row, context) =>
    (filled(row.expected_output_json) || isGradedByLists(row, context)) &&
    (filled(row.commit_hash) || isTagged(row)),
  names: (row) => ({ id: idOf(row), repo: row.repo_name ?? row.repo }),
  read: readR2e,
};

const ADD_IMAGE = 'add the column docker_image';
const TAGGED = /_final:[0-9a-f]{40}$/;
const isTagged = ({ docker_image, image }: Row): boolean =>
  [docker_image, image].some((name) => typeof name === 'string' && TAGGED.test(name));

const LISTS = ['FAIL_TO_PASS', 'PASS_TO_PASS'] as const;

/** Returns the column that NeMo reads: `name`, or its lower-case form if the column `name` has no tests. */
const columnOf = (row: Row, name: (typeof LISTS)[number]): string =>
  hasTests(row[name]) ? name : name.toLowerCase();
const hasTests = (value: unknown): boolean =>
  Array.isArray(value) ? value.length > 0 : typeof value === 'string' && !/^\s*(\[\s*\])?\s*$/.test(value);

/** Whether only the test lists decide, as in NeMo's generic agent for rows whose wrapper names R2E-Gym. */
const isGradedByLists = (row: Row, { wrappedDataset }: RowContext): boolean =>
  (wrappedDataset ?? '').includes('R2E-Gym') && LISTS.some((name) => hasTests(row[columnOf(row, name)]));

const lastPart = (text: unknown, divider: string): string =>
  String(text ?? '')
    .split(divider)
    .at(-1) ?? '';

const filled = (value: unknown): boolean => value !== undefined && value !== null && value !== '';

/** Returns the column `instance_id` (NeMo's copies have one), or else `<repository>-<commit>`; undefined if both are missing. */
function idOf(row: Row): unknown {
  if (filled(row.instance_id)) return row.instance_id;
  const commit = row.commit_hash ?? lastPart(row.docker_image, ':');
  return typeof row.repo_name === 'string' && typeof commit === 'string'
    ? `${row.repo_name}-${commit}`
    : undefined;
}

function readR2e(read: FieldReader, context: RowContext): InstanceDraft {
  const { row } = read;
  // In NeMo's copies, the column repo contains OWNER/NAME.
  const repo = word(read, 'repo_name', row.repo_name ?? lastPart(row.repo, '/'));
  const id = idOf(row);
  const instanceId = typeof id === 'string' ? id : '';
  if (instanceId === '')
    read.complain('commit_hash', 'the commit of the fix', row.commit_hash, 'add the column');
  const image = read.image(['docker_image', 'image', 'image_name']);
  if (image === null && !read.complainedOf('docker_image', 'image', 'image_name'))
    read.complain('docker_image', 'the image of the instance', row.docker_image, ADD_IMAGE);
  const before = asObject(row.parsed_commit_content)?.old_commit_hash;
  return {
    instance_id: instanceId,
    shown_id: shownId(repo, instanceId),
    repo,
    base_commit: typeof before === 'string' && before !== '' ? before : 'HEAD',
    problem_statement: issueIn(read),
    patch: goldOf(read),
    family: 'r2e-gym',
    image: image === null ? '' : withTag(image),
    ...(isGradedByLists(row, context) ? byLists(read) : byExpected(read)),
  };
}

type Grading = Required<Pick<InstanceDraft, 'FAIL_TO_PASS' | 'PASS_TO_PASS'>> & {
  environment: NonNullable<InstanceDraft['environment']>;
  plan: NonNullable<InstanceDraft['plan']>;
};

const byExpected = (read: FieldReader): Grading => ({
  FAIL_TO_PASS: [],
  PASS_TO_PASS: [],
  environment: environmentWith(TESTS_MOVED),
  plan: {
    grader: 'r2e-gym',
    apply: attempts('git apply --whitespace=fix'),
    script: '#!/bin/bash\ncd /testbed\nbash /root/run_tests.sh\n',
    timeout: 300,
    outcomes: { from: 'log', dialect: 'r2e-gym', parser: 'r2e' },
    verdict: { rule: 'expected', expected: expectedOf(read) },
  },
});

/** Grades as NeMo Gym's `anyswe_agent`: all tests of both lists must pass, and an empty patch is not evaluated. */
function byLists(read: FieldReader): Grading {
  const { row } = read;
  const listed = LISTS.filter((name) => hasTests(row[columnOf(row, name)]));
  const tests = { FAIL_TO_PASS: [] as string[], PASS_TO_PASS: [] as string[] };
  if (listed.length === LISTS.length)
    Object.assign(tests, readTests(read, columnOf(row, 'FAIL_TO_PASS'), columnOf(row, 'PASS_TO_PASS')));
  else for (const name of listed) tests[name] = read.tests(columnOf(row, name));
  return {
    ...tests,
    environment: environmentWith(TESTS_LINKED),
    plan: {
      grader: 'nemo-r2e-gym',
      apply: SWEBENCH_APPLY,
      blank: 'ends',
      script: `#!/bin/bash\ncd /testbed\nexport PYTEST_ADDOPTS="-rA \${PYTEST_ADDOPTS:-}"\n${read.optionalText('eval_script') ?? RUN_TESTS}\n`,
      timeout: 1800,
      outcomes: { from: 'log', dialect: 'r2e-gym', parser: 'r2e_nemo' },
      verdict: { rule: 'subset' },
    },
  };
}

const RUN_TESTS = `for file in /run_tests.sh /testbed/run_tests.sh /root/run_tests.sh; do
  [ ! -f "$file" ] || { bash "$file"; exit; }
done
echo 'no run_tests.sh in the image'
exit 127`;

/** Returns the text between `[ISSUE]` and `[/ISSUE]`, or the whole text if these tags are missing. */
function issueIn(read: FieldReader): string {
  const text = read.text('problem_statement', 'add the text of the issue');
  return (/\[ISSUE\]([\s\S]*?)\[\/ISSUE\]/.exec(text)?.[1] ?? text).trim();
}

/** Returns the expected status of each test. The verdict rule normalizes the names later. */
function expectedOf(read: FieldReader): Record<string, string> {
  const expected = read.object('expected_output_json', 'export the column as JSON');
  const odd = Object.entries(expected).find(([, status]) => typeof status !== 'string');
  if (odd)
    read.complain('expected_output_json', 'a status for each test', odd[1], 'export the column as JSON');
  if (Object.keys(expected).length === 0 && !read.complainedOf('expected_output_json')) {
    read.complain('expected_output_json', 'at least one test', {}, 'without tests nothing can be judged');
  }
  return expected as Record<string, string>;
}

/** Returns the gold patch of Python files that are no tests, as R2E-Gym does, or else the column `patch`; '' if both are missing. */
function goldOf(read: FieldReader): string {
  const given = read.row.parsed_commit_content ?? null;
  if (given === null || given === '') return read.optionalText('patch') ?? '';
  try {
    const content = typeof given === 'string' ? given : JSON.stringify(given);
    return patchOfParsedCommit(content, 'non_test_python');
  } catch (error) {
    if (!(error instanceof ParsedCommitError)) throw error;
    read.complain('parsed_commit_content', 'a commit of R2E-Gym', given, error.message);
    return '';
  }
}

type Setup = NonNullable<NonNullable<InstanceDraft['environment']>['setup']>[number];

/** Moves the tests to /root and links them into the tree, as R2E-Gym does. */
const TESTS_MOVED: Setup = {
  name: 'bring the tests to where they run',
  roles: ['evaluation'],
  script: [
    '[ ! -e /testbed/run_tests.sh ] || mv /testbed/run_tests.sh /root/run_tests.sh',
    '[ ! -e /testbed/r2e_tests ] || [ -L /testbed/r2e_tests ] || mv /testbed/r2e_tests /root/r2e_tests',
    '[ ! -e /r2e_tests ] || mv /r2e_tests /root/r2e_tests',
    'ln -sfn /root/r2e_tests /testbed/r2e_tests',
    '[ -f /root/run_tests.sh ] && [ -d /root/r2e_tests ]',
  ].join('\n'),
};

/** Links the tests into the tree. NeMo does not move the tests, because the script of a row may contain their paths. */
const TESTS_LINKED: Setup = {
  name: 'link the tests to where they run',
  roles: ['evaluation'],
  script: [
    'for folder in /r2e_tests /root/r2e_tests; do',
    '  [ -e /testbed/r2e_tests ] || [ ! -d "$folder" ] || ln -s "$folder" /testbed/r2e_tests',
    'done',
  ].join('\n'),
};

const environmentWith = (tests: Setup): Grading['environment'] => ({
  ...ENVIRONMENT,
  setup: [...SETUP, tests],
});

/** Setup steps of R2E-Gym, which also ignores their failures. A separate step moves or links the tests, only for the evaluation. */
const SETUP: readonly Setup[] = [
  {
    name: 'link the Python environment',
    script: [
      '[ -e /root/.venv ] || ln -s /testbed/.venv /root/.venv',
      'mkdir -p /root/.local/bin',
      'for name in python python3; do ln -sf "/testbed/.venv/bin/$name" "/root/.local/bin/$name"; done',
      'find /testbed/.venv/bin -type f -executable -exec ln -sf {} /root/.local/bin/ \\;',
    ].join('\n'),
    may_fail: true,
  },
  {
    name: 'install chardet',
    script: "python -c 'import chardet' 2>/dev/null || timeout 20 uv pip install chardet",
    may_fail: true,
    timeout: 30,
  },
  {
    name: 'remove compiled files',
    script:
      'find /testbed /r2e_tests \\( -name __pycache__ -o -name "*.pyc" \\) -not -path "*/.git/*" -exec rm -rf {} + 2>/dev/null',
    may_fail: true,
  },
];

const ENVIRONMENT: NonNullable<InstanceDraft['environment']> = {
  workdir: '/testbed',
  activate: '',
  env: {
    PATH: '/testbed/.venv/bin:/root/.venv/bin:/root/.local/bin:/root/.cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  },
  hidden: [
    '/r2e_tests',
    '/root/r2e_tests',
    '/testbed/r2e_tests',
    '/testbed/run_tests.sh',
    '/root/run_tests.sh',
    '/run_tests.sh',
  ],
  history: 'pruned',
};
