import { statSync } from 'node:fs';
import { describeProblems, readRows } from '@swefarm/datasets';
import { UsageError } from '@swefarm/shared';
import type { OutputLine } from '../output/line.ts';
import { readOutputRun } from '../output/output.ts';
import { RESULT_FORMATS } from './results.ts';

/** Yields the lines of an output, which may be gzipped. Throws UsageError when the file cannot be read or is not an output. */
export async function* readLines(path: string): AsyncGenerator<OutputLine> {
  const run = await readOutputRun(path);
  for (const file of RESULT_FORMATS[run?.rows ?? 'swefarm'].rowFiles(path)) {
    // Gym's file of failures may be absent, and a run without results has an empty file.
    const size = statSync(file, { throwIfNoEntry: false })?.size;
    if (size === 0 || (size === undefined && file !== path)) continue;
    for await (const read of readRows(file)) {
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
