/**
 * Reads rows of Multi-SWE-bench and Multi-SWE-RL. Their images contain the gold patch, the tests and the scripts that run the tests. The
 * PyPI package multi-swe-bench parses the logs, as a separate program. Source of the rules: multi-swe-bench 24f493f.
 */
import { multiSweProgram } from '@swefarm/grading';
import { asObject, type FieldReader, type Row } from '../fields/fields.ts';
import { withTag } from '../fields/image.ts';
import type { Family, InstanceDraft } from './family.ts';
import { type Stages, stagesOf } from './multiswestages.ts';
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

/** Returns the tests that only the fix makes pass, and those that passed before. Class lists of a row override its stage results. */
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
