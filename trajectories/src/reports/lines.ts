/** The lines of an output in any format, one at a time. */
import { existsSync, statSync } from 'node:fs';
import { describeProblems, readRows } from '@swefarm/datasets';
import { UsageError } from '@swefarm/shared';
import { RESULT_FORMATS } from '../formats/results.ts';
import type { OutputLine } from '../output/line.ts';
import { readOutputRun } from '../output/output.ts';

/** Throws UsageError when the file cannot be read or is not an output. It may be gzipped. */
export async function* readLines(path: string): AsyncGenerator<OutputLine> {
  const run = await readOutputRun(path);
  for (const file of RESULT_FORMATS[run?.rows ?? 'swefarm'].rowFiles(path)) {
    // Gym's file of failures is there only when something failed.
    if (file !== path && !existsSync(file)) continue;
    // A run that has no result yet.
    if (existsSync(file) && statSync(file).size === 0) continue;
    for await (const read of readRows(file)) {
      if ('problem' in read) throw new UsageError(describeProblems(file, [read.problem], 'nothing was read'));
      const line = (read.value.swefarm ?? read.value) as Partial<OutputLine>;
      if (typeof line.rollout_id !== 'string') {
        throw new UsageError(`${file}: ${read.where} is no line of an output; choose another file`);
      }
      yield line as OutputLine;
    }
  }
}
