/**
 * Lists the formats of a run's results, and reads their lines. The formats are not in registry.ts, because commands that collect need none
 * of the formats there.
 */
import { existsSync, statSync } from 'node:fs';
import { describeProblems, type RawRow, readRows } from '@swefarm/datasets';
import { type Instance, type RunRecord, UsageError } from '@swefarm/shared';
import type { OutputLine } from '../output/line.ts';
import { type Output, type OutputFormat, openOutputFile, readOutputRun } from '../output/output.ts';
import { gymFiles, openGymOutput } from './gym/rollouts.ts';

export type ResultFormat = {
  /** Whether the format writes several files, so that it cannot write to standard output. */
  severalFiles: boolean;
  /** Returns the paths of the files that contain the rows of rollouts. */
  rowFiles(path: string): string[];
  /** Opens a new output or one to resume. Throws UsageError when the files are no output of this run. */
  open(path: string, record: RunRecord, instances: () => Promise<readonly Instance[]>): Promise<Output>;
};

export const RESULT_FORMATS: Readonly<Record<OutputFormat, ResultFormat>> = {
  swefarm: {
    severalFiles: false,
    rowFiles: (path) => [path],
    open: (path, record) => openOutputFile(path, record.run_id),
  },
  gym: {
    severalFiles: true,
    rowFiles: (path) => [path, gymFiles(path).failures],
    open: async (path, record, instances) => openGymOutput(path, record, await instances()),
  },
};

/** Yields the rows of a file of results, which is empty for a run without results. Throws UsageError when the file cannot be read. */
export async function* resultRows(path: string): AsyncGenerator<RawRow> {
  if (statSync(path, { throwIfNoEntry: false })?.size !== 0) yield* readRows(path);
}

/** Yields the lines of an output, which may be gzipped. Throws UsageError when the file cannot be read or is not an output. */
export async function* readLines(path: string): AsyncGenerator<OutputLine> {
  const run = await readOutputRun(path);
  for (const file of RESULT_FORMATS[run?.rows ?? 'swefarm'].rowFiles(path)) {
    // Gym's file of failures may be absent.
    if (file !== path && !existsSync(file)) continue;
    for await (const read of resultRows(file)) {
      if ('problem' in read) throw new UsageError(describeProblems(file, [read.problem], 'nothing was read'));
      // A row of Gym has the output line in its field `swefarm` and the patch in `metadata`.
      const line = (read.value.swefarm ?? read.value) as Partial<OutputLine>;
      if (typeof line.rollout_id !== 'string' || typeof line.instance_id !== 'string' || !line.outcome) {
        throw new UsageError(
          `${file}: ${read.where} is no line of an output; name a file that rollout, collect, eval or import wrote`,
        );
      }
      const { model_patch: patch = null } = (read.value.metadata ?? {}) as { model_patch?: string | null };
      yield { ...(line as OutputLine), patch: line.patch ?? patch };
    }
  }
}
