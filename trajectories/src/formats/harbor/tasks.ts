/** Writes instances as tasks of Harbor: one folder per instance. `harbor run -p FOLDER` reads the tasks. */
import { isImagePath } from '@swefarm/datasets';
import { type GraderChoice, planEvaluation } from '@swefarm/grading';
import { AgentConfig, EvaluationConfig, type Instance, type InstancePlan, UsageError } from '@swefarm/shared';
import { openFolderTree } from '../../export/foldertree.ts';
import { uncoveredIn } from './covered.ts';
import { type TaskOptions, taskFiles } from './task.ts';

export type HarborTaskOptions = Pick<TaskOptions, 'network'> & {
  grader: GraderChoice;
  /** Whether to leave out instances that cannot become tasks. Otherwise, these instances are an error. */
  skipRefused: boolean;
};

export type WrittenTasks = {
  path: string;
  tasks: number;
  /** Number of tasks without a gold patch. Harbor's oracle cannot solve these tasks. */
  without_solution: number;
  /** Number of instances that were left out, by reason. */
  left_out: Record<string, number>;
};

/**
 * Writes the tasks to a new folder. Throws UsageError if the folder exists, if no task is left, or if an instance is refused without
 * `skipRefused`. The error names the first refused instance of each reason. Throws SwefarmError `instance_invalid` for an instance without
 * a plan.
 */
export async function writeHarborTasks(
  instances: readonly Instance[],
  path: string,
  { grader, skipRefused, network }: HarborTaskOptions,
): Promise<WrittenTasks> {
  const options: TaskOptions = {
    network,
    agentSeconds: AgentConfig.parse({}).time_limit,
    testSeconds: EvaluationConfig.parse({}).timeout,
  };
  const tasks = instances.map((instance) => {
    const plan = planEvaluation(instance, grader);
    return { instance, plan, refused: refusalOf(instance, plan) };
  });
  const refused = Map.groupBy(
    tasks.filter((task) => task.refused !== null),
    (task) => task.refused ?? '',
  );
  const whole = tasks.filter((task) => task.refused === null);
  if (whole.length === 0 || (refused.size > 0 && !skipRefused)) throw notTasks(refused, tasks.length);
  for (const [folder, [, other]] of Map.groupBy(whole, folderOf))
    if (other)
      throw new UsageError(
        `two instances have the task ${folder}: change the shown_id of ${other.instance.instance_id}`,
      );
  await using tree = await openFolderTree(path);
  for (const task of whole)
    for (const [name, text] of Object.entries(taskFiles(task.instance, task.plan, options)))
      await tree.write(`${folderOf(task)}/${name}`, text);
  await tree.finish();
  return {
    path,
    tasks: whole.length,
    without_solution: whole.filter(({ instance }) => instance.patch === '').length,
    left_out: Object.fromEntries([...refused].map(([reason, own]) => [reason, own.length])),
  };
}

const folderOf = ({ instance }: { instance: Instance }): string => instance.shown_id ?? instance.instance_id;

/** Returns the reason why the instance cannot become a task, or null. */
function refusalOf({ image, environment }: Instance, plan: InstancePlan): string | null {
  const uncovered = uncoveredIn(plan);
  if (uncovered !== null) return `the grader of a Harbor task does not support ${uncovered}`;
  if (isImagePath(image)) return 'its image is a folder or an archive of this machine';
  const other = Object.entries(environment?.env ?? {}).find(
    ([name, value]) => !/^\w+$/.test(name) || value.includes('\n'),
  );
  return other === undefined
    ? null
    : `environment.env.${other[0]}: a Dockerfile cannot set a variable with this name or with a line break`;
}

function notTasks(refused: ReadonlyMap<string, readonly { instance: Instance }[]>, all: number): UsageError {
  const reasons = [...refused].map(
    ([reason, own]) => `${own.length} of ${all} (${own[0]?.instance.instance_id}): ${reason}`,
  );
  return new UsageError(
    `no task was written: ${reasons.join('; ') || 'the dataset has no instance'}; leave the instances out with --skip-ungradable, or by the filters`,
  );
}
