/** Writes instances as tasks of Harbor: a folder for each instance, as `harbor run -p FOLDER` reads them. */
import { isImagePath } from '@swefarm/datasets';
import { type GraderChoice, planEvaluation } from '@swefarm/grading';
import { AgentConfig, EvaluationConfig, type Instance, type InstancePlan, UsageError } from '@swefarm/shared';
import { openFolderTree } from '../../export/foldertree.ts';
import { uncoveredIn } from './covered.ts';
import { type TaskOptions, taskFiles } from './task.ts';

export type HarborTaskOptions = Pick<TaskOptions, 'network'> & {
  grader: GraderChoice;
  /** Leaves out instances that cannot become tasks; without it, they are an error. */
  skipRefused: boolean;
};

export type WrittenTasks = {
  path: string;
  tasks: number;
  /** Tasks without a gold patch, in which Harbor's oracle cannot work. */
  without_solution: number;
  /** Number of instances that were left out, by reason. */
  left_out: Record<string, number>;
};

/**
 * Writes the tasks to a new folder. Throws UsageError with the first refused instance of each reason unless `skipRefused`, when no task
 * is left, or when the folder exists; SwefarmError `instance_invalid` for an instance without a plan.
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
  await using tree = await openFolderTree(path);
  for (const { instance, plan } of whole) {
    const folder = instance.shown_id ?? instance.instance_id;
    for (const [name, text] of Object.entries(taskFiles(instance, plan, options)))
      await tree.write(`${folder}/${name}`, text);
  }
  await tree.finish();
  return {
    path,
    tasks: whole.length,
    without_solution: whole.filter(({ instance }) => instance.patch === '').length,
    left_out: Object.fromEntries([...refused].map(([reason, own]) => [reason, own.length])),
  };
}

/** Returns why the instance cannot be a task; null: it can. */
function refusalOf({ image, environment }: Instance, plan: InstancePlan): string | null {
  const uncovered = uncoveredIn(plan);
  if (uncovered !== null) return `the program in a task does not have ${uncovered}`;
  if (isImagePath(image)) return 'its image is a folder or an archive of this machine';
  const isPlain = ([name, value]: [string, string]): boolean => /^\w+$/.test(name) && !value.includes('\n');
  return Object.entries(environment?.env ?? {}).every(isPlain)
    ? null
    : 'a variable of its environment is no line of a Dockerfile';
}

function notTasks(refused: ReadonlyMap<string, readonly { instance: Instance }[]>, all: number): UsageError {
  const reasons = [...refused].map(
    ([reason, own]) => `${own.length} of ${all} (${own[0]?.instance.instance_id}): ${reason}`,
  );
  return new UsageError(
    `no task was written: ${reasons.join('; ') || 'the dataset has no instance'}; leave the instances out with --skip-ungradable, or by the filters`,
  );
}
