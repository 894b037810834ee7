/** Replaces rows of trainers that name the folder of a Harbor task by rows with the files of the task. docs/harbor.md lists the rows. */
import { basename, dirname, join, resolve } from 'node:path';
import { asObject, type Row } from '../fields/fields.ts';
import { describeValue, type RowProblem } from '../fields/problem.ts';
import { type FolderRow, hasTask, isFolder, readTaskFolder } from './folder.ts';

/**
 * Key and value that name a task. `folders`: possible folders, in the order of preference; absent: the name needs a folder of tasks.
 * `alias`: name of a set of tasks.
 */
type NamedTask = { key: string; value: unknown; folders?: readonly string[]; alias?: string };
type NamingRow = { where: string; named: NamedTask; folder: string | null };

/** Places of a task's path: NeMo Gym `harbor_agent_general`, verifiers, rLLM, and verl's uni-agent. */
const PATHS = [
  'harbor_task.path',
  'info.task_dir',
  'task_path',
  'extra_info.tools_kwargs.task.metadata.task_path',
];
const SEGMENT = /^(?!\.{1,2}$)[\w.-]+$/;

/**
 * Yields the tasks after all other rows. If two folders have one name, the id of a task is the name of the folder above, `__` and the name.
 * @param tasks folder of tasks; absent: only rows with paths can be read
 * @param warn gets a warning of an alias that has no folder
 */
export async function* withNamedTasks<R extends FolderRow>(
  rows: AsyncIterable<R>,
  tasks: string | undefined,
  warn: (message: string) => void,
): AsyncGenerator<R | FolderRow> {
  const naming: NamingRow[] = [];
  for await (const row of rows) {
    const named = 'value' in row ? taskNamedBy(row.value, tasks) : null;
    if (named === null) yield row;
    else naming.push({ where: row.where, named, folder: await folderWithTask(named) });
  }
  const isUnclear = repeatedNames(naming);
  const aliases = new Set(naming.flatMap(({ named }) => named.alias ?? []));
  for (const row of naming) {
    const missing = tasks === undefined ? null : await missingAlias(row, tasks);
    if (missing !== null && aliases.size > 1) {
      const expected = `the folder ${missing}, because the rows have ${aliases.size} aliases`;
      yield complaint(row, expected, 'name the folder that has a folder for each alias with --family-files');
      continue;
    }
    if (missing !== null)
      warn(`${row.where}: ${row.named.key}: no folder ${missing}; the task is ${row.folder}`);
    yield await readNamed(row, isUnclear);
  }
}

/** Returns the names that several folders have. */
function repeatedNames(naming: readonly NamingRow[]): ReadonlySet<string> {
  const folders = new Set(naming.flatMap(({ folder }) => folder ?? []));
  const names = Map.groupBy(folders, (folder) => basename(folder));
  return new Set([...names].flatMap(([name, all]) => (all.length > 1 ? [name] : [])));
}

/** Returns the folder of the row's alias if it does not exist and the task comes from another folder; else null. */
async function missingAlias({ named: { alias }, folder }: NamingRow, tasks: string): Promise<string | null> {
  if (alias === undefined || folder === null || basename(resolve(tasks)) === alias) return null;
  const own = join(resolve(tasks), alias);
  return (await isFolder(own)) ? null : own;
}

async function folderWithTask({ folders = [] }: NamedTask): Promise<string | null> {
  for (const folder of folders) if (await hasTask(folder)) return folder;
  return null;
}

const complaint = (
  { where, named: { key, value } }: Pick<NamingRow, 'where' | 'named'>,
  expected: string,
  remedy: string,
): { where: string; problem: RowProblem } => ({
  where,
  problem: { where, field: key, expected, found: describeValue(value), remedy },
});

async function readNamed(row: NamingRow, isUnclear: ReadonlySet<string>): Promise<FolderRow> {
  const { where, folder } = row;
  const { folders } = row.named;
  if (folders === undefined)
    return complaint(row, 'the name of a task and a folder of tasks', 'name the folder with --family-files');
  if (folder === null)
    return complaint(
      row,
      `a task: task.toml in ${folders.join(' or in ') || 'a folder without . and ..'}`,
      'correct the row, or name the folder of tasks with --family-files',
    );
  const name = basename(folder);
  const id = isUnclear.has(name) ? `${basename(dirname(folder))}__${name}` : name;
  const task = await readTaskFolder(folder);
  const at = `${where} (${task.where})`;
  return 'value' in task
    ? { where: at, value: { ...task.value, instance_id: id } }
    : { where: at, problem: { ...task.problem, where: at } };
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
    ...(isSafe && parts.length === 2 ? { alias: parts[0] } : {}),
    folders: isSafe ? [...new Set([join(resolve(tasks), ...parts), join(resolve(tasks), name)])] : [],
  };
}
