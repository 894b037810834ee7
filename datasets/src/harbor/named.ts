/** Replaces rows of trainers that name the folder of a Harbor task by rows with the files of the task. docs/harbor.md lists the rows. */
import { basename, join, resolve } from 'node:path';
import { asObject, type Row } from '../fields/fields.ts';
import { describeValue, type RowProblem } from '../fields/problem.ts';
import { type FolderRow, hasTask, readTaskFolders } from './folder.ts';

/** Key and value that name a task. `folders`: possible folders, in the order of preference; absent: the name needs a folder of tasks. */
type NamedTask = { key: string; value: unknown; folders?: readonly string[] };

/** Places of a task's path: NeMo Gym `harbor_agent_general`, verifiers, rLLM, and verl's uni-agent. */
const PATHS = [
  'harbor_task.path',
  'info.task_dir',
  'task_path',
  'extra_info.tools_kwargs.task.metadata.task_path',
];
const SEGMENT = /^(?!\.{1,2}$)[\w.-]+$/;

/** @param tasks folder of tasks; absent: only rows with paths can be read */
export async function* withNamedTasks<R extends FolderRow>(
  rows: AsyncIterable<R>,
  tasks: string | undefined,
): AsyncGenerator<R | FolderRow> {
  for await (const row of rows) {
    const named = 'value' in row ? taskNamedBy(row.value, tasks) : null;
    if (named === null) yield row;
    else yield await readNamed(row.where, named);
  }
}

async function readNamed(where: string, { key, value, folders }: NamedTask): Promise<FolderRow> {
  const complain = (expected: string, remedy: string): { where: string; problem: RowProblem } => ({
    where,
    problem: { where, field: key, expected, found: describeValue(value), remedy },
  });
  if (folders === undefined)
    return complain('the name of a task and a folder of tasks', 'name the folder with --family-files');
  for (const folder of folders) {
    if (!(await hasTask(folder))) continue;
    for await (const task of readTaskFolders(folder)) {
      const at = `${where} (${task.where})`;
      return 'value' in task
        ? { where: at, value: task.value }
        : { where: at, problem: { ...task.problem, where: at } };
    }
  }
  return complain(
    `a task: task.toml in ${folders.join(' or in ') || 'a folder without . and ..'}`,
    'correct the row, or name the folder of tasks with --family-files',
  );
}

/** Returns null for rows of other datasets. */
function taskNamedBy(row: Row, tasks: string | undefined): NamedTask | null {
  for (const key of PATHS) {
    const value = valueAt(row, key);
    if (typeof value === 'string') return { key, value, folders: [folderOf(value, tasks)] };
  }
  const { prompt, env_extras } = row;
  // In SkyRL the prompt is the path of the task.
  if (typeof prompt === 'string' && asObject(env_extras)?.data_source === prompt)
    return { key: 'prompt', value: prompt, folders: [folderOf(prompt, tasks)] };
  const request = asObject(row.responses_create_params);
  if (request === null || asObject(request.metadata)?.instance_dict !== undefined) return null;
  const { instance_id: id, task_name: name } = row;
  if (typeof id === 'string' && id.includes('::')) return byName('instance_id', id, id.split('::'), tasks);
  if (typeof name === 'string') return byName('task_name', name, name.split('/').slice(-1), tasks);
  return null;
}

const valueAt = (row: Row, key: string): unknown =>
  key.split('.').reduce<unknown>((at, part, index) => (index === 0 ? row : asObject(at))?.[part], row);

const folderOf = (path: string, tasks: string | undefined): string =>
  tasks === undefined ? resolve(path) : join(resolve(tasks), basename(path));

/** @param parts alias of the dataset, if the row has one, and name of the task. An alias may be a folder below `tasks`. */
function byName(key: string, value: string, parts: readonly string[], tasks: string | undefined): NamedTask {
  if (tasks === undefined) return { key, value };
  const name = parts.at(-1) ?? '';
  const isSafe = parts.length <= 2 && parts.every((part) => SEGMENT.test(part));
  return {
    key,
    value,
    folders: isSafe ? [...new Set([join(resolve(tasks), ...parts), join(resolve(tasks), name)])] : [],
  };
}
