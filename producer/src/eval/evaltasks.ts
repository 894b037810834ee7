/** Lists the tasks of an evaluation: a task for each prediction in each round, with its state. */
import { join } from 'node:path';
import { isNoPatch } from '@swefarm/grading';
import type { InstancePlan } from '@swefarm/shared';
import type { OutputLine, Prediction } from '@swefarm/trajectories';
import { FILES, instanceFolder, readIfThere, readReport, roundName } from '@swefarm/trajectories';
import type { GradingPlans } from './gradingplans.ts';

export type EvalTask = {
  prediction: Prediction;
  /** Line of an earlier output, which receives the new verdict; undefined without `--from`. */
  oldLine?: OutputLine | undefined;
  round: number;
  folder: string;
  state:
    | 'open'
    /** The patch is empty or null. As in the harness, it is not evaluated. */
    | 'empty'
    /** The patch has only white space, which the plan does not apply, so it is not evaluated. */
    | 'blank'
    /** The folder has a report.json. */
    | 'done';
};

/** Lists the tasks of all rounds. `rounds`: predictions for the chosen rows. The grader of `plans` decides the structure of the folders. */
export async function listEvalTasks(
  { logs, runId, plans }: { logs: string; runId: string; plans: GradingPlans },
  rounds: readonly (readonly Prediction[])[],
  oldLines: ReadonlyMap<Prediction, OutputLine>,
): Promise<EvalTask[]> {
  const items: EvalTask[] = [];
  for (const [round, predictions] of rounds.entries()) {
    for (const prediction of predictions) {
      const folder = instanceFolder(logs, roundName(runId, round), prediction, plans.grader);
      const state = await stateOf(prediction, folder, plans.of(prediction.instance_id));
      items.push({ prediction, oldLine: oldLines.get(prediction), round, folder, state });
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
