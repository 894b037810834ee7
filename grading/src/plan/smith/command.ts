/** Builds the test command of a SWE-smith instance. */
import { mypyCases } from '../directives.ts';
import { recordExitCode } from '../evalscript.ts';
import { END_MARKER, START_MARKER } from '../markers.ts';
import { testFilesOf } from './files.ts';
import type { SmithProject } from './projects.ts';

export type SmithRow = {
  FAIL_TO_PASS: readonly string[];
  PASS_TO_PASS: readonly string[];
  /** The patch of the row, which introduces the bug. */
  patch: string;
  /** Test patch of the instance from which the bug is copied; '' if the bug is not a copy. */
  refTestPatch: string;
};

/**
 * Returns the test command of the project, which nearly always runs the whole suite. A few large Python projects run only the files of
 * FAIL_TO_PASS, followed by the files of PASS_TO_PASS.
 */
export function smithCommand(project: SmithProject, row: SmithRow): string {
  const { commandRule, minTesting, testCommand, testFiles } = project;
  if (commandRule === 'mypy-k') {
    // A row without cases is never resolved, as in the harness: the command ends in `-k` without a value, which pytest rejects.
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

/** Returns the folders of Babel's packages that a patch changes. */
const packages = (patch: string): string[] => [
  ...new Set([...patch.matchAll(/^diff --git a\/(packages\/[^/\n]+)\//gm)].map((match) => match[1] ?? '')),
];

/** Returns the eval.sh of the harness with two more lines, which record the exit code of the tests. */
export const smithScript = (command: string, folder: string): string =>
  recordExitCode(
    `${['#!/bin/bash', 'set -uxo pipefail', `cd ${folder}`, `: '${START_MARKER}'`, command, `: '${END_MARKER}'`].join('\n')}\n`,
  );
