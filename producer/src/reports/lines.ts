/** The lines of an output in any format, one at a time. */
import { createReadStream, existsSync } from 'node:fs';
import { UsageError } from '@swefarm/shared';
import { parseJsonLines } from '../datasets/jsonl.ts';
import { RESULT_FORMATS } from '../formats/results.ts';
import type { OutputLine } from '../output/line.ts';
import { readOutputRun } from '../output/output.ts';

/** Throws UsageError when the file cannot be read or is not an output. */
export async function* readLines(path: string): AsyncGenerator<OutputLine> {
  const run = await readOutputRun(path);
  for (const file of RESULT_FORMATS[run?.rows ?? 'swefarm'].rowFiles(path)) {
    // Gym's file of failures is there only when something failed.
    if (file !== path && !existsSync(file)) continue;
    try {
      for await (const read of parseJsonLines(createReadStream(file))) {
        const row = 'value' in read ? read.value : {};
        const line = (row.swefarm ?? row) as Partial<OutputLine>;
        if (typeof line.rollout_id !== 'string') {
          throw new UsageError(`${file}: ${read.where} is no line of an output; choose another file`);
        }
        yield line as OutputLine;
      }
    } catch (error) {
      if (error instanceof UsageError) throw error;
      throw new UsageError(`${file}: cannot be read: ${(error as Error).message}`, { cause: error });
    }
  }
}
