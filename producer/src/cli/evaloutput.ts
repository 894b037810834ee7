/** Reads and writes the result lines of `eval --output`. */
import { UsageError } from '@swefarm/shared';
import type { LineSummary, OutputLine } from '@swefarm/trajectories';
import {
  type EvaluationStatus,
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
import { mergeEvaluation, reevaluationOutput } from '../eval/lostevaluations.ts';
import type { EvalValues } from './evaloptions.ts';
import { openOutput } from './follow.ts';

export type StoredEvaluation = OutputRun & { evaluation: OutputEvaluation };

/** Returns the old line of a rollout, which is written with the new verdict; undefined without `--from`. */
type LineOf = (rolloutId: string) => OutputLine | undefined;

const fileOf = ({ output }: EvalValues): string | null =>
  output === undefined || output === '-' ? null : output;

/** Returns the record of an earlier start; null for a new output. Throws UsageError when another command wrote the file. */
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

export async function openEvalOutput(o: EvalValues, work: EvaluationRun, lineOf: LineOf): Promise<Output> {
  if (o.output === undefined) return streamOutput(() => Promise.resolve());
  const path = o.output;
  if (o.from === undefined) return await openOutput(path, work.record.run_id);
  const old = await readOutputRun(o.from);
  const overrides = { ...old?.record.reward.overrides, ...work.record.reward.overrides };
  // Null: the lines may belong to several old runs.
  const output = await openOutput(path, null);
  const known = new Map<string, LineSummary>();
  for (const id of work.items.keys()) {
    const tally = output.lines.get(lineOf(id)?.rollout_id ?? '');
    if (tally) known.set(id, tally);
  }
  return reevaluationOutput(output, known, (fresh) => {
    const line = lineOf(fresh.rollout_id);
    return line ? mergeEvaluation(line, fresh, overrides) : fresh;
  });
}

/** Returns the statuses of the rollouts that have a line in the output, by rollout id. */
export async function readStatuses(
  o: EvalValues,
  work: EvaluationRun,
  lineOf: LineOf,
): Promise<Map<string, { end: EvaluationStatus; message: string | null }>> {
  const ends = new Map<string, { end: EvaluationStatus; message: string | null }>();
  const path = fileOf(o);
  if (path === null) return ends;
  const ids = new Map([...work.items.keys()].map((id) => [lineOf(id)?.rollout_id ?? id, id]));
  for await (const line of readLines(path)) {
    const id = ids.get(line.rollout_id);
    if (id !== undefined)
      ends.set(id, { end: evaluationStatusOf(line, line.report), message: line.failure?.message ?? null });
  }
  return ends;
}
