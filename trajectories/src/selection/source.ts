/** The rollouts of an output file or of a run in Redis, one at a time, without their artifacts. */
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { describeProblems, readRows } from '@swefarm/datasets';
import { describeUnreadable, type Farm, type RunRecord, UsageError } from '@swefarm/shared';
import { RESULT_FORMATS } from '../formats/results.ts';
import { type OutputLine, outputLine } from '../output/line.ts';
import { readOutputRun } from '../output/output.ts';

export type ResultSource = {
  /** For messages. */
  name: string;
  /** Null: the run is not known. */
  record: RunRecord | null;
  /** In stored order. A run's lines have no patch: its artifact has it. Throws UsageError for what is no output. */
  lines(): AsyncGenerator<OutputLine>;
};

export type SourceOptions = {
  farm: () => Promise<Farm>;
  onWarning: (text: string) => void;
};

/** `name`: a file, or the id of a run. Throws UsageError for neither. */
export async function openSource(name: string, options: SourceOptions): Promise<ResultSource> {
  return existsSync(name) ? await fileSource(name) : await runSource(name, options);
}

async function fileSource(path: string): Promise<ResultSource> {
  const run = await readOutputRun(path);
  const files = RESULT_FORMATS[run?.rows ?? 'swefarm'].rowFiles(path);
  return {
    name: path,
    record: run?.record ?? null,
    async *lines() {
      for (const file of files) yield* linesOf(file);
    },
  };
}

async function* linesOf(file: string): AsyncGenerator<OutputLine> {
  // The failures of Gym's files may be an empty file.
  if (existsSync(file) && (await isEmpty(file))) return;
  for await (const row of readRows(file)) {
    if ('problem' in row) throw new UsageError(describeProblems(file, [row.problem], 'nothing was exported'));
    const line = lineIn(row.value);
    if (line === null) {
      throw new UsageError(
        `${file}: ${row.where} is no line of an output; name a file that rollout, collect, eval or import wrote`,
      );
    }
    yield line;
  }
}

async function isEmpty(file: string): Promise<boolean> {
  return (await stat(file)).size === 0;
}

/** A line of ours, or the one that a row of Gym's files carries. */
function lineIn(row: Record<string, unknown>): OutputLine | null {
  const line = (row.swefarm ?? row) as Partial<OutputLine>;
  const known = typeof line.rollout_id === 'string' && typeof line.outcome === 'string';
  if (!known || typeof line.instance_id !== 'string') return null;
  const { model_patch: patch = null } = (row.metadata ?? {}) as { model_patch?: string | null };
  return { ...(line as OutputLine), patch: line.patch ?? patch };
}

async function runSource(runId: string, options: SourceOptions): Promise<ResultSource> {
  const farm = await options.farm();
  const record = await farm.runs.get(runId);
  if (!record) {
    throw new UsageError(
      `${runId}: neither a file nor a run at ${farm.address}; swefarm status lists the runs there are`,
    );
  }
  let warned = false;
  return {
    name: `run ${runId}`,
    record,
    async *lines() {
      for (let cursor = '0'; ; ) {
        const batch = await farm.results.read(runId, cursor);
        if (!warned) for (const entry of batch.unreadable) options.onWarning(describeUnreadable(entry));
        if (batch.results.length + batch.unreadable.length === 0) break;
        for (const { result } of batch.results) yield outputLine(result, { patch: null, report: null });
        cursor = batch.last_id;
      }
      // The lines are read twice.
      warned = true;
    },
  };
}
