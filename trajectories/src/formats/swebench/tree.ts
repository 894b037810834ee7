/** The folders and files of the SWE-bench harness, from which an evaluation is resumed. */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isSmith } from '@swefarm/grading';
import { replaceFile } from '@swefarm/shared';
import { readIfThere, writing } from '../../output/appendfile.ts';
import { folderOf, type Prediction } from './predictions.ts';
import { pythonJson } from './pythonjson.ts';

/** The harness's folder for all runs, below the working directory. */
export const LOGS = join('logs', 'run_evaluation');

export const FILES = {
  report: 'report.json',
  testOutput: 'test_output.txt',
  patch: 'patch.diff',
  script: 'eval.sh',
  log: 'run_instance.log',
} as const;

/** The harness's runs for several evaluations of the same predictions: `name`, `name-2`, `name-3`. */
export const roundName = (runId: string, round: number): string =>
  round === 0 ? runId : `${runId}-${round + 1}`;

/** SWE-smith's harness has no folder for the model: its `--eval_dir` is the run's folder. */
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
  /** Null: the step was not reached; a file of an earlier evaluation is removed. */
  script: string | null;
  testOutput: string | null;
  report: Record<string, unknown> | null;
};

/**
 * Writes an instance's folder; report.json comes last, because it marks the instance as done.
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

/** The content of a report.json: its verdict and its tests. */
export type StoredReport = {
  resolved: boolean;
  /** Category → lists of tests; null when the log could not be read. */
  tests: Record<string, { success: string[]; failure: string[] }> | null;
};

/** `absent`: not evaluated. `broken`: the file exists but is unreadable; the harness counts it as completed and as an error. */
export type Stored = { state: 'absent' | 'broken' } | { state: 'report'; report: StoredReport };

export async function readReport(folder: string, instanceId: string): Promise<Stored> {
  const text = await readIfThere(join(folder, FILES.report));
  if (text === null) return { state: 'absent' };
  try {
    const whole = JSON.parse(text) as Record<string, unknown>;
    // SWE-smith's file is the report itself, the others' an object with one key.
    const report = (whole[instanceId] ?? whole) as { resolved?: unknown; tests_status?: unknown };
    if (typeof report.resolved !== 'boolean') return { state: 'broken' };
    const tests = (report.tests_status ?? null) as StoredReport['tests'];
    return { state: 'report', report: { resolved: report.resolved, tests } };
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return { state: 'broken' };
    throw error;
  }
}
