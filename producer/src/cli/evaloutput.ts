/** Reads and writes the result lines of `eval --output`. */
import { UsageError } from '@swefarm/shared';
import type { LineSummary } from '@swefarm/trajectories';
import {
  createOutput,
  evaluationStatusOf,
  type Output,
  type OutputEvaluation,
  type OutputRun,
  readLines,
  readOutputRun,
  requireNewOutput,
  streamOutput,
  writeOutputRun,
} from '@swefarm/trajectories';
import { type EvaluationRun, hashPatches } from '../eval/evaluationrun.ts';
import { mergeEvaluation } from '../eval/lostevaluations.ts';
import type { EvalValues } from './evalinput.ts';
import type { EvaluationEnd } from './evalreport.ts';
import { openOutput } from './outputs.ts';

export type StoredEvaluation = OutputRun & { evaluation: OutputEvaluation };

const fileOf = ({ output }: EvalValues): string | null =>
  output === undefined || output === '-' ? null : output;

/** Returns the record of an earlier start; null without an existing file. Throws UsageError for a file of another command or evaluation. */
export async function readStoredEvaluation(o: EvalValues): Promise<StoredEvaluation | null> {
  const path = fileOf(o);
  if (path === null) return null;
  const stored = await readOutputRun(path);
  const evaluation = stored?.evaluation;
  if (!stored || !evaluation) {
    await requireNewOutput(path);
    return null;
  }
  const other = (why: string) =>
    new UsageError(`${path}: ${why}, or choose another --output`, { code: 'output_exists' });
  if (o.runId !== undefined && o.runId !== evaluation.run_id) {
    const { run_id } = evaluation;
    throw other(`has the lines of evaluation ${run_id}; give --run-id ${run_id} to continue it`);
  }
  if (evaluation.mends !== (o.from !== undefined)) {
    throw other(`was begun with ${evaluation.mends ? '--from' : '--predictions'}; give the same again`);
  }
  return { ...stored, evaluation };
}

/** Writes the record beside a new output, so that the same command can resume it. */
export async function writeEvaluation(
  o: EvalValues,
  work: EvaluationRun,
  runId: string,
  stateDir: string | null,
): Promise<void> {
  const path = fileOf(o);
  if (path === null) return;
  const old = o.from === undefined ? null : await readOutputRun(o.from);
  await writeOutputRun(path, {
    format: 'swefarm-output-1',
    record: old?.record ?? work.record,
    state_dir: stateDir,
    evaluation: {
      run_id: runId,
      record: work.record,
      rollouts: [...work.items.keys()],
      patches_sha256: hashPatches(work.items),
      mends: o.from !== undefined,
    },
  });
}

/** Opens the output. With `--from`, the output writes the old line with the new verdict in place of each new line. */
export async function openEvalOutput(o: EvalValues, { record, items }: EvaluationRun): Promise<Output> {
  if (o.output === undefined) return streamOutput(() => Promise.resolve());
  if (o.from === undefined) return await openOutput(o.output, record.run_id);
  const old = await readOutputRun(o.from);
  const rule = {
    overrides: { ...old?.record.reward.overrides, ...record.reward.overrides },
    weights: record.reward.weights ?? old?.record.reward.weights ?? null,
  };
  // Null: the lines may belong to several old runs.
  const inner = await openOutput(o.output, null);
  const lines = new Map<string, LineSummary>();
  for (const [id, { oldLine }] of items) {
    const written = oldLine && inner.lines.get(oldLine.rollout_id);
    if (written) lines.set(id, written);
  }
  return createOutput({
    name: inner.name,
    lines,
    write(fresh) {
      const merged = fresh.map((line) => {
        const oldLine = items.get(line.rollout_id)?.oldLine;
        return oldLine ? mergeEvaluation(oldLine, line, rule) : line;
      });
      return inner.append(merged, inner.cursor);
    },
    close: async () => await inner[Symbol.asyncDispose](),
  });
}

/** Returns the statuses of the rollouts that have a line in the output, by rollout id. */
export async function readStatuses(
  o: EvalValues,
  { items }: EvaluationRun,
): Promise<Map<string, EvaluationEnd>> {
  const ends = new Map<string, EvaluationEnd>();
  const path = fileOf(o);
  if (path === null) return ends;
  const ids = new Map([...items].map(([id, { oldLine }]) => [oldLine?.rollout_id ?? id, id]));
  for await (const line of readLines(path)) {
    const id = ids.get(line.rollout_id);
    if (id !== undefined)
      ends.set(id, { end: evaluationStatusOf(line, line.report), message: line.failure?.message ?? null });
  }
  return ends;
}
