/** `swefarm eval`: grades predictions as the SWE-bench harness does, and writes the same files. */
import { describeProblems } from '@swefarm/datasets';
import { newRunRecord } from '@swefarm/runs';
import { type ArtifactContent, type Instance, type Result, UsageError } from '@swefarm/shared';
import { blankFiles, evaluationStatusOf, filesOf, isFolderName, writeFolder } from '@swefarm/trajectories';
import { changedPatches, type EvalTask, listEvalTasks } from '../eval/evaltasks.ts';
import { patchesOf, planEvaluationRun } from '../eval/evaluationrun.ts';
import { planGrading } from '../eval/gradingplans.ts';
import { command } from './declare.ts';
import { EVALUATION, readEvalInput } from './evalinput.ts';
import {
  openEvalOutput,
  readStatuses,
  readStoredEvaluation,
  type StoredEvaluation,
  writeEvaluation,
} from './evaloutput.ts';
import { type Evaluation, type EvaluationEnd, type EvaluationEnds, writeReports } from './evalreport.ts';
import { openHome } from './farm.ts';
import { datasetOf, producerConfig } from './options.ts';
import { runSession } from './session.ts';
import { listenForEvaluations, type Stop } from './stop.ts';
import { printStatus } from './terminal.ts';
import { localWorkers } from './workers.ts';

export const evaluate = command({
  options: EVALUATION,
  example: 'swefarm eval --dataset rows.jsonl --predictions preds.jsonl --run-id mine',
  async run(o) {
    const stop = listenForEvaluations();
    const begun = await readStoredEvaluation(o);
    const now = new Date().toISOString().slice(0, 19).replace(/[-:]/g, '');
    const runId = o.runId ?? begun?.evaluation.run_id ?? `eval-${now}`;
    if (!isFolderName(runId)) throw new UsageError(`--run-id ${runId}: expected a name that can be a folder`);
    const config = producerConfig(o);
    if (!o.localWorker && config.redis_url === null) {
      throw new UsageError('--no-local-worker needs the --redis-url of a farm whose workers do the work');
    }
    const dataset = await datasetOf(o, stop.draining);
    const given = await readEvalInput(o, dataset, stop.draining);
    if (given.problems.length > 0) {
      printStatus(`swefarm: ${describeProblems(given.name, given.problems, 'the others are graded')}`);
    }
    if (!given.rounds[0]?.length) throw new UsageError(`${given.name}: no prediction is left to grade`);
    const chosen = new Set(dataset.instances.map((instance) => instance.instance_id));
    const rounds = given.rounds.map((round) => round.filter(({ instance_id }) => chosen.has(instance_id)));
    const groupSize = String(given.rounds.length);
    const flags = { ...o.run, agent: 'patch', kind: 'validation', groupSize, evalTimeout: o.timeout };
    const describe = (instances: Instance[]) =>
      newRunRecord({ dataset: { ...dataset, instances }, flags }, false);
    const { evaluation: settings } = describe(dataset.instances);
    const plans = planGrading(dataset.instances, settings.grader);
    const items = await listEvalTasks({ logs: o.logsDir, runId, plans }, rounds, given.oldLines);
    const work = planEvaluationRun(items, dataset.instances, describe, begun?.evaluation ?? null);
    const timeoutSeconds = settings.timeout;
    const evaluation = { o, config, runId, dataset, given, plans, items, work, timeoutSeconds };
    await announce(evaluation);
    const ended: EvaluationEnds = new Map();
    try {
      const complete = await evaluateOpen(evaluation, begun, stop, ended);
      return await writeReports(evaluation, ended, complete);
    } catch (error) {
      await writeReports(evaluation, ended, false);
      throw error;
    }
  },
});

async function announce({ items, runId }: Evaluation): Promise<void> {
  const count = (state: EvalTask['state']): number => items.filter((item) => item.state === state).length;
  const earlier = count('done') > 0 ? `, ${count('done')} were evaluated earlier` : '';
  const empty = count('empty') > 0 ? `, ${count('empty')} are empty` : '';
  printStatus(
    `swefarm: run ${runId}: ${count('open')} of ${items.length} predictions to evaluate${earlier}${empty}`,
  );
  const changed = await changedPatches(items);
  if (changed.length === 0) return;
  const named = changed.slice(0, 5).join(', ') + (changed.length > 5 ? `, … (${changed.length})` : '');
  printStatus(
    `swefarm: evaluated earlier with another patch, and not evaluated again: ${named}; choose another --run-id for a new run`,
  );
}

/** Evaluates the open tasks. Returns false when a signal ended the evaluation early. `begun`: record of an earlier start. */
async function evaluateOpen(
  evaluation: Evaluation,
  begun: StoredEvaluation | null,
  stop: Stop,
  ended: EvaluationEnds,
): Promise<boolean> {
  const { work, o, config, runId } = evaluation;
  await finishWithoutContainer(evaluation, ended);
  if (!work) return true;
  const { record, instances, items } = work;
  await using stack = new AsyncDisposableStack();
  let output = begun && stack.use(await openEvalOutput(o, work));
  if (output) {
    printStatus(`swefarm: resuming: ${output.name} has ${output.lines.size} of ${items.size} lines`);
    const ends = await readStatuses(o, work);
    for (const [id, item] of items) {
      const found = ends.get(id);
      // An earlier start wrote the report but no line, so the task is evaluated again.
      if (!found) ended.delete(item);
      else if (item.state === 'open') ended.set(item, found);
    }
    if (ends.size === items.size) return true;
  }
  const home = await openHome(config, record, begun, stack, stop.draining);
  if (!output) {
    await writeEvaluation(o, work, runId, home.stateDir);
    output = stack.use(await openEvalOutput(o, work));
  }
  const { complete } = await runSession({
    ...{ ...home, output, record, instances, stop, patches: patchesOf(work) },
    copyArtifactsTo: o.copyArtifacts,
    rollouts: new Set(items.keys()),
    workers: localWorkers({ ...o, concurrency: o.maxWorkers }, home),
    onResult: async (result, content) => {
      const item = items.get(result.rollout_id);
      if (item) ended.set(item, await writeEvaluated(evaluation, item, result, content));
    },
  });
  return complete;
}

/** Statuses of the tasks that need no evaluation. */
const WITHOUT_CONTAINER = { empty: 'empty_patch', blank: 'patch_not_applied', done: 'earlier' } as const;

async function finishWithoutContainer({ items, plans }: Evaluation, ended: EvaluationEnds): Promise<void> {
  for (const item of items) {
    const { prediction, folder, state } = item;
    if (state === 'open') continue;
    if (state === 'blank')
      await writeFolder(folder, blankFiles(prediction, plans.of(prediction.instance_id)));
    ended.set(item, { end: WITHOUT_CONTAINER[state], message: null });
  }
}

async function writeEvaluated(
  { plans, timeoutSeconds }: Evaluation,
  { prediction, folder }: EvalTask,
  result: Result,
  content: ArtifactContent | null,
): Promise<EvaluationEnd> {
  const plan = plans.of(prediction.instance_id);
  const limit = Math.min(plan?.timeout ?? timeoutSeconds, timeoutSeconds);
  await writeFolder(folder, filesOf({ result, content, prediction, folder, plan, timeoutSeconds: limit }));
  const end = evaluationStatusOf(result, content?.report ?? null);
  return { end, message: result.failure?.message ?? null };
}
