/** Lists the tasks of an evaluation: a task for each prediction in each round, with its state. */
import { join } from 'node:path';
import { isNoPatch } from '@swefarm/grading';
import type { InstancePlan } from '@swefarm/shared';
import type { Prediction } from '@swefarm/trajectories';
import { FILES, instanceFolder, readIfThere, readReport, roundName } from '@swefarm/trajectories';

export type EvalTask = {
  prediction: Prediction;
  round: number;
  folder: string;
  state:
    | 'open'
    /** The patch is empty or null. As in the harness, it is not evaluated. */
    | 'empty'
    /** The patch has only white space, which no tool applies, so it is not evaluated. */
    | 'blank'
    /** The folder has a report.json. */
    | 'done';
};

export type EvalTasksRequest = {
  logs: string;
  runId: string;
  /** Predictions of each round, only for the chosen rows. */
  rounds: readonly (readonly Prediction[])[];
  plan: (instanceId: string) => InstancePlan | null;
  /** Grader whose folder structure is used. */
  grader: string;
};

export async function listEvalTasks(request: EvalTasksRequest): Promise<EvalTask[]> {
  const { logs, runId, rounds, plan, grader } = request;
  const items: EvalTask[] = [];
  for (const [round, predictions] of rounds.entries()) {
    for (const prediction of predictions) {
      const folder = instanceFolder(logs, roundName(runId, round), prediction, grader);
      const state = await stateOf(prediction, folder, plan(prediction.instance_id));
      items.push({ prediction, round, folder, state });
    }
  }
  return items;
}

async function stateOf(
  prediction: Prediction,
  folder: string,
  plan: InstancePlan | null,
): Promise<EvalTask['state']> {
  const { model_patch: patch, instance_id } = prediction;
  if (patch === null || patch === '') return 'empty';
  if ((await readReport(folder, instance_id)).state !== 'absent') return 'done';
  return isNoPatch(patch, plan) ? 'blank' : 'open';
}

/** Returns the instance ids of done tasks whose report is for another patch. */
export async function changedPatches(items: readonly EvalTask[]): Promise<string[]> {
  const changed: string[] = [];
  for (const { prediction, folder, state } of items) {
    if (state !== 'done') continue;
    const earlier = await readIfThere(join(folder, FILES.patch));
    if (earlier !== null && earlier !== prediction.model_patch) changed.push(prediction.instance_id);
  }
  return changed;
}
