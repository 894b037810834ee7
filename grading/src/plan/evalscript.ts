/**
 * Writes the bash script that resets the test files, applies the test patch and runs the tests. Each line equals the line of the harness.
 * No script has `set -e`, so the script continues after a failed step, as in the harnesses.
 */
import { type Instance, SwefarmError } from '@swefarm/shared';
import { DiffError, readDiff } from '../text/diff.ts';
import { forkResetFiles, mypyCases, testDirectives } from './directives.ts';
import { END_MARKER, EXIT_CODE_MARKER, START_MARKER } from './markers.ts';
import type { Spec } from './specs.ts';
import { wpCalypsoCommands } from './wpcalypso.ts';

/** Delimiter of the here-document with the test patch in the script. */
export const HEREDOC = 'EOF_114329324912';
const TESTBED = '/testbed';
const ACTIVATE = ['source /opt/miniconda3/bin/activate', 'conda activate testbed'];
const TRUST_REPO = `git config --global --add safe.directory ${TESTBED}`;

const script = (flags: string, lines: string[]): string => `${['#!/bin/bash', flags, ...lines].join('\n')}\n`;
const FLAGS = 'set -uxo pipefail';

/** Returns the script of swebench 4.1.0, which has one form for Python and one for all other languages. Throws `instance_invalid`. */
export function swebenchScript(instance: Instance, spec: Spec): string {
  return script(FLAGS, spec.language === 'py' ? pythonLines(instance, spec) : commonLines(instance, spec));
}

function pythonLines(instance: Instance, spec: Spec): string[] {
  // If the test patch changes no existing file, the line ends in a blank and moves HEAD to base_commit, as in the harness.
  const reset = `git checkout ${instance.base_commit} ${modifiedFiles(instance).join(' ')}`;
  return [
    ...pythonSetup(spec, `git -c core.fileMode=false diff ${instance.base_commit}`),
    reset,
    applyTestPatch('git apply -v -', instance),
    `: '${START_MARKER}'`,
    ...withDirectives(spec.testCommands, testDirectives(instance)),
    `: '${END_MARKER}'`,
    reset,
  ];
}

/** Returns the first lines of the scripts of both Python harnesses. */
const pythonSetup = (spec: Spec, showDiff: string): string[] => [
  ...ACTIVATE,
  `cd ${TESTBED}`,
  ...spec.evalCommands,
  TRUST_REPO,
  `cd ${TESTBED}`,
  'git status',
  'git show',
  showDiff,
  ...ACTIVATE,
  ...(spec.install === null ? [] : [spec.install]),
];

function commonLines(instance: Instance, spec: Spec): string[] {
  const files = modifiedFiles(instance);
  const reset =
    files.length > 0
      ? `git checkout ${instance.base_commit} ${files.join(' ')}`
      : 'echo "No test files to reset"';
  const commands = spec.parser === 'calypso' ? wpCalypsoCommands(instance) : spec.testCommands;
  return [
    `cd ${TESTBED}`,
    TRUST_REPO,
    `cd ${TESTBED}`,
    reset,
    applyTestPatch('git apply --verbose --reject -', instance),
    ...spec.build,
    `: '${START_MARKER}'`,
    ...commands,
    `: '${END_MARKER}'`,
    reset,
  ];
}

/** Returns the script of swebench 5.0.2: the script of the row, or else the script of 4.1.0, below the first two lines of 5.0.2. */
export function latestScript(instance: Instance, spec: Spec): string {
  const lines = (instance.eval_script ?? swebenchScript(instance, spec)).trim().split('\n');
  return script(
    FLAGS,
    lines.filter((line) => line !== '#!/bin/bash' && line !== FLAGS),
  );
}

/**
 * Returns the script with two more lines, as in swebench 5.0.2, that print the exit code of the tests below the end marker: the script
 * itself exits with the code of the final reset. A script without an end marker is returned unchanged.
 */
export function recordExitCode(text: string): string {
  const lines = text.split('\n');
  const end = lines.findIndex((line) => line.includes(END_MARKER));
  if (end < 0) return text;
  return [...lines.slice(0, end), STORE_CODE, lines[end], PRINT_CODE, ...lines.slice(end + 1)].join('\n');
}

const STORE_CODE = 'SWEBENCH_TEST_EXIT_CODE=$?';
const PRINT_CODE = `echo "${EXIT_CODE_MARKER}: $SWEBENCH_TEST_EXIT_CODE"`;

/** Returns the script of SWE-Gym's fork of swebench, which has no markers and selects mypy's tests by case names. */
export function forkScript(instance: Instance, spec: Spec, recordsExitCode: boolean): string {
  const reset = `git checkout ${instance.base_commit} ${forkResetFiles(instance.test_patch).join(' ')}`;
  const mypy = instance.repo.toLowerCase() === 'python/mypy';
  const named = mypy ? [`"${mypyCases(instance.test_patch)}"`] : testDirectives(instance);
  return script('set -xo pipefail', [
    ...pythonSetup(spec, `git diff ${instance.base_commit}`),
    reset,
    applyTestPatch('git apply -v -', instance),
    ...withDirectives(spec.testCommands, named),
    ...(recordsExitCode ? [STORE_CODE, PRINT_CODE] : []),
    reset,
  ]);
}

function withDirectives(commands: string[], directives: string[]): string[] {
  const last = commands.at(-1) ?? '';
  return [...commands.slice(0, -1), [last, ...directives].join(' ')];
}

/** Returns the files of the test patch that exist before the patch is applied. */
function modifiedFiles(instance: Instance): string[] {
  try {
    return readDiff(instance.test_patch)
      .filter((file) => file.source.startsWith('a/'))
      .map((file) => file.source.slice(2));
  } catch (cause) {
    if (!(cause instanceof DiffError)) throw cause;
    throw new SwefarmError('instance_invalid', `${instance.instance_id}: test_patch: ${cause.message}`, {
      cause,
    });
  }
}

function applyTestPatch(command: string, instance: Instance): string {
  if (instance.test_patch.split('\n').includes(HEREDOC)) {
    throw new SwefarmError(
      'instance_invalid',
      `${instance.instance_id}: test_patch contains the line ${HEREDOC} that ends it in the eval script`,
    );
  }
  return `${command} <<'${HEREDOC}'\n${instance.test_patch}\n${HEREDOC}`;
}
