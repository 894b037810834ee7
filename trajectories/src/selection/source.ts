/** Reads the rollouts of an output file or of a run in Redis, one at a time, without their artifacts. */
import { existsSync } from 'node:fs';
import {
  type ArtifactContent,
  describeUnreadable,
  type Farm,
  type RunRecord,
  type UnreadableResult,
} from '@swefarm/shared';
import { readLines } from '../formats/results.ts';
import { artifactOfLine } from '../output/artifact.ts';
import { type OutputLine, outputLine } from '../output/line.ts';
import { readOutputRun } from '../output/output.ts';
import { requireRun, resultsOf } from '../output/runresults.ts';

export type ResultSource = {
  /** Name of the source in messages. */
  name: string;
  /** Record of the run; null: unknown. */
  record: RunRecord | null;
  /** Yields the lines in stored order. Lines of a run have no patch. Throws UsageError for a file that is no output. */
  lines(): AsyncGenerator<OutputLine>;
  /** Returns the artifact of one of these lines; null when the line has none. Throws the errors of {@link artifactOfLine}. */
  artifact(line: OutputLine): Promise<ArtifactContent | null>;
};

export type SourceOptions = {
  farm: () => Promise<Farm>;
  onWarning: (text: string) => void;
};

/** Opens a source. `name` is the path of an output or the id of a run. Throws UsageError for any other name. */
export async function openSource(name: string, options: SourceOptions): Promise<ResultSource> {
  if (!existsSync(name)) return await runSource(name, options);
  const run = await readOutputRun(name);
  return {
    ...{ name, record: run?.record ?? null, lines: () => readLines(name) },
    artifact: (line) => artifactOfLine(line, name, options.farm),
  };
}

async function runSource(runId: string, options: SourceOptions): Promise<ResultSource> {
  const farm = await options.farm();
  const record = await requireRun(farm, runId);
  let warned = false;
  return {
    name: `run ${runId}`,
    record,
    artifact: async ({ artifact }) => (artifact === null ? null : await farm.artifacts.read(artifact)),
    async *lines() {
      const unreadable: UnreadableResult[] = [];
      for await (const result of resultsOf(farm, runId, unreadable))
        yield outputLine(result, { patch: null, report: null });
      if (!warned) for (const entry of unreadable) options.onWarning(describeUnreadable(entry));
      // Callers read the lines twice, so only the first pass prints warnings about unreadable results.
      warned = true;
    },
  };
}
