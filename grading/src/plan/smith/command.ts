/** The command that SWE-smith tests one instance with. */
import { mypyCases } from '../directives.ts';
import { recordExitCode } from '../evalscript.ts';
import { END_MARKER, START_MARKER } from '../markers.ts';
import { testFilesOf } from './files.ts';
import type { SmithProject } from './projects.ts';

export type SmithRow = {
  FAIL_TO_PASS: readonly string[];
  PASS_TO_PASS: readonly string[];
  /** The row's own patch, which makes the bug. */
  patch: string;
  /** The test patch of the instance that a mirrored bug comes from; '' for others. */
  refTestPatch: string;
};

/**
 * The project's command, for nearly all projects the whole suite. Of a few large Python projects only the files of the instance's
 * tests run: those of FAIL_TO_PASS, then those of PASS_TO_PASS.
 */
export function smithCommand(project: SmithProject, row: SmithRow): string {
  const { commandRule, minTesting, testCommand, testFiles } = project;
  if (commandRule === 'mypy-k') {
    // Without cases the command ends in a bare -k, which pytest refuses: such a row is never resolved, as in the harness.
    const cases = mypyCases(row.refTestPatch);
    return cases === '' ? testCommand : `${testCommand} "${cases}"`;
  }
  if (commandRule === 'babel-packages') return [testCommand, ...packages(row.patch)].join(' ');
  if (!minTesting || row.FAIL_TO_PASS.length === 0) return testCommand;
  const files = [row.FAIL_TO_PASS, row.PASS_TO_PASS].flatMap((tests) => {
    const found = testFilesOf(testFiles, tests);
    return found.rule === 'files' ? found.files : [];
  });
  return [testCommand, ...files].join(' ');
}

/** The folders of Babel's packages that a patch touches. */
const packages = (patch: string): string[] => [
  ...new Set([...patch.matchAll(/^diff --git a\/(packages\/[^/\n]+)\//gm)].map((match) => match[1] ?? '')),
];

/** The harness's eval.sh, with the two lines that record the exit code of the tests. */
export const smithScript = (command: string, folder: string): string =>
  recordExitCode(
    `${['#!/bin/bash', 'set -uxo pipefail', `cd ${folder}`, `: '${START_MARKER}'`, command, `: '${END_MARKER}'`].join('\n')}\n`,
  );
