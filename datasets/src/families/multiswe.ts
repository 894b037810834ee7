/**
 * Reads rows of Multi-SWE-bench and Multi-SWE-RL. Their images contain the gold patch, the tests and the scripts that run the tests. The
 * PyPI package multi-swe-bench parses the logs, as a separate program. Source of the rules: multi-swe-bench 24f493f.
 */
import { multiSweProgram } from '@swefarm/grading';
import { asObject, type FieldReader, isTextList, type Row } from '../fields/fields.ts';
import { withTag } from '../fields/image.ts';
import type { Family, InstanceDraft } from './family.ts';
import { commit, imageOr, refuseWithoutImage, word } from './planned.ts';

export const multiSwe: Family = {
  name: 'multi-swe',
  columns: [
    'org',
    'number',
    'base',
    'fix_patch',
    'resolved_issues',
    'lang',
    'language',
    'tag',
    'number_interval',
    ...['fixed_tests', 'p2p_tests', 'f2p_tests', 's2p_tests', 'n2p_tests'],
    ...['run_result', 'test_patch_result', 'fix_patch_result'],
  ],
  fits: (row) =>
    typeof row.org === 'string' &&
    row.number !== undefined &&
    row.fix_patch !== undefined &&
    row.base !== undefined,
  names: (row) => ({ id: idOf(row), repo: `${String(row.org)}/${String(row.repo)}` }),
  read: readMulti,
};

const idOf = (row: Row): unknown =>
  typeof row.instance_id === 'string' && row.instance_id !== ''
    ? row.instance_id
    : `${String(row.org)}__${String(row.repo)}-${String(row.number)}`;

/** Files in `/home` of every image that contain or name the gold patch or the tests. */
const HIDDEN = [
  'fix.patch',
  'test.patch',
  'run.sh',
  'test-run.sh',
  'fix-run.sh',
  'prepare.sh',
  'check_git_changes.sh',
].map((name) => `/home/${name}`);

/**
 * Tries the `git apply` command of `fix-run.sh`, because a patch that conflicts with the tests looks like tests that cannot start. The
 * trial uses a copy of the index and a separate object folder. `git apply --check` would miss conflicts between the two patch files. The
 * check passes if `fix-run.sh` has no such command.
 */
const CHECK = [
  '/bin/bash',
  '-c',
  [
    "line=$(grep -m1 -oE 'git apply [^;|&]*/home/fix[.]patch' /home/fix-run.sh) || exit 0",
    'scratch=$(mktemp -d) && mkdir "$scratch/objects" || exit 1',
    'cp "$(git rev-parse --git-path index)" "$scratch/index" || exit 1',
    'export GIT_ALTERNATE_OBJECT_DIRECTORIES=$(realpath "$(git rev-parse --git-path objects)")',
    'export GIT_INDEX_FILE=$scratch/index GIT_OBJECT_DIRECTORY=$scratch/objects',
    'git add -u',
    // The patch may change ignored files, which `git add -u` skips.
    'eval "$(sed "s/^git apply/git apply --numstat -z/" <<<"$line")" | while IFS=$\'\\t\' read -r -d "" _ _ path; do',
    '  if [ -f "$path" ] && [ ! -L "$path" ]; then git add -f -- "$path"; fi',
    'done',
    'eval "$(sed "s/^git apply/git apply --cached/" <<<"$line")"',
  ].join('\n'),
];

function readMulti(read: FieldReader): InstanceDraft {
  const { row } = read;
  const org = word(read, 'org');
  const repo = word(read, 'repo');
  const number = numberOf(read);
  const language = String(row.lang ?? row.language ?? '').toLowerCase();
  const rule = `mswebench/${org}_m_${repo}`.toLowerCase();
  if (language === 'python' && read.image() === null)
    refuseWithoutImage(read, 'Python rows of Multi-SWE-bench have no known image');
  const stages = stagesOf(read);
  return {
    instance_id: String(idOf(row)),
    repo: `${org}/${repo}`,
    base_commit: commit(read, 'base.sha', asObject(row.base)?.sha),
    problem_statement: taskOf(read),
    patch: read.text('fix_patch', 'export the whole row'),
    ...read.texts('test_patch'),
    ...listsOf(stages),
    family: 'multi-swe',
    image: withTag(imageOr(read, `${rule}:pr-${number}`)),
    environment: { workdir: `/home/${repo}`, activate: '', hidden: HIDDEN },
    plan: {
      grader: 'multi-swe-bench',
      patch_path: '/home/fix.patch',
      apply: [{ name: 'git apply --cached, as fix-run.sh applies it', argv: CHECK }],
      blank: 'ends',
      script: '#!/bin/bash\nbash /home/fix-run.sh\n',
      outcomes: multiSweProgram({
        ...{ org, repo, number },
        ...read.texts('tag', 'number_interval'),
      }),
      verdict: { rule: 'classes', stages },
    },
  };
}

function numberOf(read: FieldReader): number {
  const value = Number(read.row.number);
  if (Number.isSafeInteger(value) && value > 0) return value;
  read.complain('number', 'the number of the pull request', read.row.number, 'export the column as a number');
  return 0;
}

/** Returns title and body of the first resolved issue. The text of the pull request is not used: it would reveal the fix. */
function taskOf(read: FieldReader): string {
  const { resolved_issues: issues } = read.row;
  const columns = asObject(issues);
  const first = Array.isArray(issues)
    ? asObject(issues[0])
    : columns && { title: firstOf(columns.title), body: firstOf(columns.body) };
  const text = [first?.title, first?.body]
    .filter((part) => typeof part === 'string' && part !== '')
    .join('\n\n');
  if (text === '') read.refuse('no issue text', 'resolved_issues', 'an issue with title or body', issues);
  return text;
}

const firstOf = (value: unknown): unknown => (Array.isArray(value) ? value[0] : value);

/** Returns the tests that only the fix makes pass, and the tests that passed before. Class lists of a row override stage results. */
function listsOf(stages: Stages): Pick<InstanceDraft, 'FAIL_TO_PASS' | 'PASS_TO_PASS'> {
  const all = Object.entries(stages);
  const hasLists = all.some(([, { class: own }]) => own !== undefined);
  const listed = all.filter(([, { fix, class: own }]) => (hasLists ? own !== undefined : fix === 'PASS'));
  const names = (passedBefore: boolean): string[] =>
    listed.flatMap(([name, { test, class: own }]) =>
      (own === undefined ? test === 'PASS' : own === 'p2p') === passedBefore ? [name] : [],
    );
  return { FAIL_TO_PASS: names(false), PASS_TO_PASS: names(true) };
}

type Statuses = { run: string; test: string; fix: string };
type Stages = Record<string, Statuses & { class?: 'p2p' | 'f2p' | 's2p' | 'n2p' }>;

const RESULTS = { run: 'run_result', test: 'test_patch_result', fix: 'fix_patch_result' } as const;
const CLASSES = {
  fixed_tests: null,
  p2p_tests: 'p2p',
  f2p_tests: 'f2p',
  s2p_tests: 's2p',
  n2p_tests: 'n2p',
} as const;
const LISTS = { passed_tests: 'PASS', failed_tests: 'FAIL', skipped_tests: 'SKIP' } as const;
const STATUSES = ['PASS', 'FAIL', 'SKIP', 'NONE'];

/**
 * Reads the status of each test in three stages: original code (`run`), with the tests, and with the fix. Reads the results of the stages,
 * then the lists by class (`CLASSES`), which override the results.
 */
function stagesOf(read: FieldReader): Stages {
  const found = new Map<string, Stages[string]>();
  const at = (name: string): Stages[string] => {
    const known = found.get(name) ?? { run: 'NONE', test: 'NONE', fix: 'NONE' };
    found.set(name, known);
    return known;
  };
  for (const [stage, column] of Object.entries(RESULTS)) {
    const result = asObject(read.row[column]);
    for (const [list, status] of Object.entries(LISTS)) {
      const names = result?.[list] ?? [];
      if (isTextList(names)) for (const name of names) at(name)[stage as keyof typeof RESULTS] = status;
      else read.complain(`${column}.${list}`, 'a list of test names', names, 'export the whole row');
    }
  }
  for (const [column, own] of Object.entries(CLASSES)) {
    for (const [name, statuses] of entriesOf(read, column))
      Object.assign(at(name), statuses, own === null ? {} : { class: own });
  }
  const passing = [...found.values()].some(({ fix }) => fix === 'PASS');
  if (!passing && read.problems.length === 0)
    read.refuse('no test that its fix passes', 'fix_patch_result', 'a test', undefined);
  return Object.fromEntries(found);
}

/** Reads one list of tests in either form: `name → {run, test, fix}`, or columns `{name: […], run: […], test: […], fix: […]}`. */
function entriesOf(read: FieldReader, column: string): [string, Statuses][] {
  const given = read.row[column] ?? null;
  if (given === null) return [];
  const value = asObject(given);
  if (!value) {
    read.complain(column, 'an object', given, 'export the whole row');
    return [];
  }
  return isColumns(value)
    ? value.name.map((name, at): [string, Statuses] => [
        name,
        statusesOf(read, column, { run: value.run?.[at], test: value.test?.[at], fix: value.fix?.[at] }),
      ])
    : Object.entries(value)
        // In parquet, the struct of each row has a member for every test name in the file: null for tests of other rows.
        .filter(([, statuses]) => statuses !== null)
        .map(([name, statuses]) => [name, statusesOf(read, column, asObject(statuses) ?? {})]);
}

type Columns = { name: string[] } & Partial<Record<keyof Statuses, unknown[]>>;

const isColumns = (value: Row): value is Columns =>
  isTextList(value.name) && [value.run, value.test, value.fix].every(Array.isArray);

function statusesOf(read: FieldReader, column: string, given: Row): Statuses {
  const status = (stage: keyof Statuses): string => {
    const value = given[stage];
    if (typeof value === 'string' && STATUSES.includes(value)) return value;
    if (!read.complainedOf(column)) read.complain(column, STATUSES.join(', '), value, 'export the whole row');
    return 'NONE';
  };
  return { run: status('run'), test: status('test'), fix: status('fix') };
}
