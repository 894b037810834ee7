/** Reads and writes the folders and files of the SWE-bench harness, from which `swefarm eval` resumes an evaluation. */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isSmith } from '@swefarm/grading';
import { jsonText, replaceFile } from '@swefarm/shared';
import { readIfThere, writing } from '../../output/appendfile.ts';
import { folderOf, type Prediction } from './predictions.ts';

/**
 * Writes JSON as Python's `json.dumps(value, indent=4)` does: all characters outside printable ASCII are escaped. Line feeds are not
 * escaped here, because `jsonText` escapes those inside strings.
 */
export const pythonJson = (value: unknown): string =>
  jsonText(value, 4).replace(/[^\n -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Folder of all runs in the SWE-bench harness, relative to the working directory. */
export const LOGS = join('logs', 'run_evaluation');

export const FILES = {
  report: 'report.json',
  testOutput: 'test_output.txt',
  patch: 'patch.diff',
  script: 'eval.sh',
  log: 'run_instance.log',
} as const;

/** Returns the run name of a round, which evaluates the same predictions again: `name`, `name-2`, `name-3`. */
export const roundName = (runId: string, round: number): string =>
  round === 0 ? runId : `${runId}-${round + 1}`;

/** Returns the folder of an instance. SWE-smith's harness has no folder for the model: its `--eval_dir` is the folder of the run. */
export function instanceFolder(
  logs: string,
  run: string,
  { instance_id, model_name_or_path }: Pick<Prediction, 'instance_id' | 'model_name_or_path'>,
  grader: string,
): string {
  return join(logs, run, ...(isSmith(grader) ? [] : [folderOf(model_name_or_path)]), instance_id);
}

export type Files = {
  patch: string;
  log: string;
  /** Content of eval.sh. Null here and in the next two fields: the step did not run, and an earlier file is removed. */
  script: string | null;
  testOutput: string | null;
  report: Record<string, unknown> | null;
};

/**
 * Writes the folder of an instance. report.json is written last, because it marks the instance as evaluated.
 *
 * @throws UnusableError `output_unwritable`
 */
export async function writeFolder(folder: string, files: Files): Promise<void> {
  await writing(folder, async () => {
    await mkdir(folder, { recursive: true });
    await rm(join(folder, FILES.report), { force: true });
    for (const name of ['patch', 'script', 'testOutput', 'log'] as const) {
      const text = files[name];
      if (text === null) await rm(join(folder, FILES[name]), { force: true });
      else await writeFile(join(folder, FILES[name]), text);
    }
    if (files.report) await replaceFile(join(folder, FILES.report), pythonJson(files.report));
  });
}

export type StoredReport = {
  resolved: boolean;
  /** Lists of tests by category; null when the log could not be read. */
  tests: Record<string, { success: string[]; failure: string[] }> | null;
};

/** `absent`: not evaluated. `broken`: report.json is unreadable; the harness counts the instance as completed and as an error. */
export type Stored = { state: 'absent' | 'broken' } | { state: 'report'; report: StoredReport };

export async function readReport(folder: string, instanceId: string): Promise<Stored> {
  const text = await readIfThere(join(folder, FILES.report));
  if (text === null) return { state: 'absent' };
  try {
    const whole = JSON.parse(text) as Record<string, unknown>;
    // SWE-smith's file contains the report itself. Files of other harnesses contain an object whose only key is the instance id.
    const report = (whole[instanceId] ?? whole) as { resolved?: unknown; tests_status?: unknown };
    if (typeof report.resolved !== 'boolean') return { state: 'broken' };
    const tests = (report.tests_status ?? null) as StoredReport['tests'];
    return { state: 'report', report: { resolved: report.resolved, tests } };
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return { state: 'broken' };
    throw error;
  }
}
