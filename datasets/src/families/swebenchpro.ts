/**
 * Reads rows of SWE-bench Pro. Scripts in the row, or in the folder of `--family-files`, run the tests and parse the output. The id, the
 * image tag and `before_repo_set_cmd` contain the commit of the fix, which is in the image; the agent sees none of the three. Source of the
 * rules: scaleapi/SWE-bench_Pro-os ca10a60.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { proProgram } from '@swefarm/grading';
import { heredoc } from '../fields/bash.ts';
import type { FieldReader } from '../fields/fields.ts';
import { withTag } from '../fields/image.ts';
import { LiteralError, parseTextList } from '../fields/pythonliteral.ts';
import type { Family, InstanceDraft, RowContext } from './family.ts';
import { commit, imageOr, shownId } from './planned.ts';

export const sweBenchPro: Family = {
  name: 'swe-bench-pro',
  columns: [
    'requirements',
    'interface',
    'fail_to_pass',
    'pass_to_pass',
    'selected_test_files_to_run',
    'before_repo_set_cmd',
    'dockerhub_tag',
    'run_script.sh',
    'parsing_script.py',
    'parser.py',
    'base_dockerfile',
    'instance_dockerfile',
  ],
  fits: (row) =>
    (typeof row.instance_id === 'string' && ID.test(row.instance_id)) ||
    (row.before_repo_set_cmd !== undefined && row.selected_test_files_to_run !== undefined),
  read: (read, context) => readPro(read, context),
};

const ID = /^instance_.+__.+-[0-9a-f]{40}(-v[0-9a-z]+)?$/;

/** Column names of the test lists in copies of the dataset. The first column that is not null is read. */
const LISTS = {
  fail_to_pass: ['fail_to_pass', 'FAIL_TO_PASS'],
  pass_to_pass: ['pass_to_pass', 'PASS_TO_PASS'],
};

export function readPro(read: FieldReader, context: RowContext, columns = LISTS): InstanceDraft {
  const instanceId = read.id();
  const repo = read.repo();
  const base = commit(read, 'base_commit');
  const selected = textList(read, 'selected_test_files_to_run');
  const lastLine = (read.optionalText('before_repo_set_cmd') ?? '').trim().split('\n').at(-1) ?? '';
  if (lastLine === '')
    read.complain('before_repo_set_cmd', 'the commands of the row', lastLine, 'export the whole row');
  const testsOf = (names: readonly string[]): string[] =>
    textList(read, names.find((name) => (read.row[name] ?? null) !== null) ?? names.at(-1) ?? '');
  const lists = { FAIL_TO_PASS: testsOf(columns.fail_to_pass), PASS_TO_PASS: testsOf(columns.pass_to_pass) };
  if (lists.FAIL_TO_PASS.length + lists.PASS_TO_PASS.length === 0 && read.problems.length === 0)
    read.refuse('no tests', 'fail_to_pass', 'at least one test', []);
  return {
    instance_id: instanceId,
    shown_id: shownId(repo.replace('/', '__').replaceAll(/[^A-Za-z0-9._-]/g, '-') || 'instance', instanceId),
    repo,
    base_commit: base,
    problem_statement: taskOf(read),
    ...read.texts('patch', 'test_patch'),
    ...lists,
    family: 'swe-bench-pro',
    image: withTag(imageOr(read, imageOf(read, repo, instanceId))),
    environment: {
      workdir: '/app',
      activate: '',
      setup: [
        { name: 'check out the base commit', script: `git reset --hard ${base} && git checkout ${base}` },
      ],
    },
    plan: {
      grader: 'swe-bench-pro',
      before: beforeSteps(base, lastLine),
      ...proPlan(selected, lastLine, textsOf(read, instanceId, context)),
      apply: [{ name: 'git apply -v, without binary parts', argv: APPLY }],
      timeout: 3600,
    },
  };
}

/** Applies the patch without binary files, in a single attempt, as upstream does. */
const APPLY = [
  '/bin/bash',
  '-c',
  [
    `awk 'function out() { if (!binary) printf "%s", part; part = ""; binary = 0 }`,
    `/^diff --git / { out() } { part = part $0 "\\n" } /^Binary files .* differ$/ || /^GIT binary patch$/ { binary = 1 } END { out() }'`,
    '"$0" >/workspace/patch.diff && git apply -v /workspace/patch.diff',
  ].join(' '),
  '/tmp/patch.diff',
];

function taskOf(read: FieldReader): string {
  const problem = read.text('problem_statement', 'add the text of the issue');
  const { requirements, interface: interfaces } = read.texts('requirements', 'interface');
  return `${problem}\n\nRequirements:\n${requirements}\n\nNew interfaces introduced:\n${interfaces}`;
}

/** Reads a column that contains a list, or the text of a list in JSON or Python syntax. */
function textList(read: FieldReader, column: string): string[] {
  const value = read.row[column];
  if (typeof value !== 'string') return read.tests(column);
  try {
    return parseTextList(value);
  } catch (error) {
    if (!(error instanceof LiteralError)) throw error;
    read.complain(column, 'a list of strings, or its text', value, error.message);
    return [];
  }
}

function imageOf(read: FieldReader, repo: string, instanceId: string): string | null {
  const tag = read.optionalText('dockerhub_tag') || derivedTag(repo, instanceId);
  if (/^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/.test(tag)) return `jefzda/sweap-images:${tag}`;
  read.complain('dockerhub_tag', 'the tag of an image', tag, 'export the column as it is');
  return null;
}

/** The only instance whose image tag ends with `-vnan`. */
const EXCEPTION = 'instance_element-hq__element-web-ec0f940ef0e8e3b61078f145f34dc40d1938e6c5-vnan';

/** Returns the image tag of a row without `dockerhub_tag`: owner, repository and id, cut to the maximum length of a tag. */
function derivedTag(repo: string, instanceId: string): string {
  const [owner = '', name = ''] = repo.toLowerCase().split('/');
  const id = instanceId.replace(/^instance_/, '');
  if (instanceId === EXCEPTION) return `${owner}.${name}-${id}`.slice(0, 128);
  const short = repo.toLowerCase() === 'element-hq/element-web' ? 'element' : name;
  return `${owner}.${short}-${id.replace(/-vnan$/, '')}`.slice(0, 128);
}

function textsOf(read: FieldReader, instanceId: string, { familyFiles }: RowContext): ProTexts {
  const runScript = read.optionalText('run_script.sh');
  const parser = read.optionalText('parsing_script.py') ?? read.optionalText('parser.py');
  const dockerfiles = ['base_dockerfile', 'instance_dockerfile'].map((name) => read.optionalText(name) ?? '');
  if (runScript !== null && parser !== null) return { runScript, parser, dockerfiles };
  const found =
    familyFiles === undefined || !/^[\w.-]+$/.test(instanceId)
      ? null
      : textsOfFolder(familyFiles, instanceId);
  if (found && 'texts' in found) return found.texts;
  read.refuse(
    'the scripts of SWE-bench Pro are not here',
    'run_script.sh',
    'the texts of its scripts',
    undefined,
    `${found ? `${found.missing} is missing; ` : ''}fetch the folders run_scripts and dockerfiles of github.com/scaleapi/SWE-bench_Pro-os and name the folder that contains both with --family-files`,
  );
  return { runScript: '', parser: '', dockerfiles: [] };
}

type ProTexts = {
  runScript: string;
  parser: string;
  /** Texts of the Dockerfiles of base and instance. Their ENV lines become exports. */
  dockerfiles: readonly string[];
};

type Plan = NonNullable<InstanceDraft['plan']>;

/** Reads the texts of an instance from the folders of the dataset's repository, or returns the path of a missing file. */
function textsOfFolder(folder: string, id: string): { texts: ProTexts } | { missing: string } {
  const paths = [
    `run_scripts/${id}/run_script.sh`,
    `run_scripts/${id}/parser.py`,
    `dockerfiles/base_dockerfile/${id}/Dockerfile`,
    `dockerfiles/instance_dockerfile/${id}/Dockerfile`,
  ];
  const texts: string[] = [];
  for (const path of paths) {
    try {
      texts.push(readFileSync(join(folder, path), 'utf8'));
    } catch {
      return { missing: join(folder, path) };
    }
  }
  const [runScript = '', parser = '', ...dockerfiles] = texts;
  return { texts: { runScript, parser, dockerfiles } };
}

/** Returns the steps before the patch. Upstream mounts /workspace, and the tests need the commit that `lastLine` names. */
function beforeSteps(base: string, lastLine: string): NonNullable<Plan['before']> {
  const fix = /\b[0-9a-f]{40}\b/.exec(lastLine)?.[0];
  return [
    { name: 'make /workspace', script: 'mkdir -p /workspace' },
    { name: 'check out the base commit', script: `git reset --hard ${base} && git checkout ${base}` },
    ...(fix === undefined
      ? []
      : [{ name: 'find the commit of the tests', script: `git cat-file -e '${fix}^{commit}'` }]),
  ];
}

/** Returns the part of the plan that depends on the scripts of the instance. */
function proPlan(
  selected: readonly string[],
  lastLine: string,
  texts: ProTexts,
): Pick<Plan, 'unapplied' | 'blank' | 'after' | 'script' | 'files' | 'outcomes' | 'verdict'> {
  return {
    unapplied: 'tests_run',
    blank: 'tests_run',
    after: [{ name: 'bring the test files', script: `${exportsOf(texts)}${lastLine}`, may_fail: true }],
    script: [
      '#!/bin/bash',
      heredoc('cat >/workspace/run_script.sh', texts.runScript),
      `${exportsOf(texts)}cd /app`,
      // The list is unquoted as in upstream's command, so that the script gets the same arguments.
      `bash /workspace/run_script.sh ${selected.join(',')} >/workspace/stdout.log 2>/workspace/stderr.log`,
      'tail -c 100000 /workspace/stdout.log /workspace/stderr.log',
      '',
    ].join('\n'),
    files: ['/workspace/stdout.log', '/workspace/stderr.log'],
    outcomes: proProgram(texts.parser),
    verdict: { rule: 'subset' },
  };
}

/** Converts `ENV A=b` and `ENV A b` to exports (upstream converts the second form wrongly). Drops continuation lines. */
const exportsOf = ({ dockerfiles }: ProTexts): string =>
  dockerfiles
    .flatMap((text) => text.split('\n'))
    .map((line) => line.trim())
    .filter((line) => line.startsWith('ENV'))
    .map((line) => {
      const rest = line.slice('ENV'.length).trim().replace(/\\$/, '').trim();
      const spaced = /^([A-Za-z_]\w*)\s+([^=].*)$/.exec(rest);
      return `export ${spaced ? `${spaced[1]}=${JSON.stringify(spaced[2])}` : rest}\n`;
    })
    .join('');
