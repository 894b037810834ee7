/** Reads folders of Harbor tasks as rows. A row contains the files and the digest of a task. `families/harbor.ts` reads the rows. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { lstat, readdir, readFile, realpath, stat } from 'node:fs/promises';
import { basename, join, relative, resolve, sep } from 'node:path';
import { errorMessage, UsageError } from '@swefarm/shared';
import ignore from 'ignore';
import type { RowProblem } from '../fields/problem.ts';

/** Column that contains the files and the digest of a task. */
export const TASK_COLUMN = 'harbor_task';
/** Maximum size in bytes of all files of one task in a row. */
export const MOST_TASK_BYTES = 16 * 1024 ** 2;
const MOST_FILES = 10_000;
/** Files and folders of a task that Harbor includes in the digest. The farm reads no other files. */
const PARTS = ['task.toml', 'instruction.md', 'README.md', 'trajectory.json'] as const;
const FOLDERS = ['environment', 'tests', 'solution', 'steps'] as const;
/** Patterns of files that the digest excludes if the task has no `.gitignore`, as in Harbor. */
const IGNORED = ['__pycache__/', '*.pyc', '.DS_Store', '*.swp', '*.swo', '*~'];

/** `base64` is absent if the file would make the row larger than {@link MOST_TASK_BYTES}. */
export type TaskRowFile = { base64?: string; bytes: number; executable: boolean };
export type FolderRow =
  | { where: string; value: Record<string, unknown> }
  | { where: string; problem: RowProblem };

export type TaskRow = { digest: string; files: Record<string, TaskRowFile> };

export const isFolder = async (path: string): Promise<boolean> =>
  (await stat(path).catch(() => null))?.isDirectory() === true;

const exists = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

/** Returns whether a folder is the folder of a task. */
export const hasTask = (folder: string): Promise<boolean> => exists(join(folder, 'task.toml'));

/** Yields the task in `folder` if it has a `task.toml`, else the tasks in its subfolders by name. @throws UsageError if there is no task */
export async function* readTaskFolders(folder: string): AsyncGenerator<FolderRow> {
  const root = resolve(folder);
  if (await hasTask(root)) {
    yield await readTaskFolder(root);
    return;
  }
  const names = (await readdir(root)).sort();
  let found = 0;
  for (const name of names) {
    const task = join(root, name);
    if (!(await isFolder(task)) || !(await hasTask(task))) continue;
    found += 1;
    yield await readTaskFolder(task);
  }
  if (found === 0)
    throw new UsageError(
      `${folder}: is a folder without Harbor tasks (neither it nor a folder in it has a task.toml); name a .jsonl, .json or .parquet file, or a folder of tasks`,
    );
}

/** Reads the folder of one task. */
export async function readTaskFolder(task: string): Promise<FolderRow> {
  const where = task;
  const found = new Map<string, string>();
  try {
    const root = await realpath(task);
    for (const part of [...PARTS, ...FOLDERS])
      if (await exists(join(task, part))) await walk(root, join(root, part), found);
    const row = await rowOf(root, found);
    return { where, value: { instance_id: basename(task), [TASK_COLUMN]: row } };
  } catch (error) {
    if (!(error instanceof BadFile)) throw error;
    return { where, problem: { where, ...error.problem } };
  }
}

/** Signals a file that a task must not contain. */
class BadFile extends Error {
  readonly problem: Omit<RowProblem, 'where'>;

  constructor(field: string, expected: string, found: string, remedy: string) {
    super(found);
    this.problem = { field, expected, found, remedy };
  }
}

const LINKS = 'links to files of the same task only';

/** Adds the files at or below `path` to `found`, which maps the path in the task to the real path. Throws BadFile. */
async function walk(root: string, path: string, found: Map<string, string>): Promise<void> {
  const name = relative(root, path).split(sep).join('/');
  const refuse = (expected: string, what: string, remedy = 'remove it from the task'): never => {
    throw new BadFile(name, expected, what, remedy);
  };
  const kind = await lstat(path).catch((error: unknown) => refuse('a readable file', errorMessage(error)));
  if (kind.isDirectory()) {
    const names = await readdir(path).catch((error: unknown) =>
      refuse('a readable folder', errorMessage(error)),
    );
    for (const inner of names.sort()) await walk(root, join(path, inner), found);
    return;
  }
  let real = path;
  if (kind.isSymbolicLink()) {
    real = await realpath(path).catch(() => refuse(LINKS, 'a link to nothing'));
    if (!real.startsWith(`${root}${sep}`)) refuse(LINKS, `a link to ${real}`);
    if (!(await stat(real)).isFile()) refuse(LINKS, 'a link to a folder', 'replace the link by the folder');
  } else if (!kind.isFile()) refuse('regular files and folders', 'a device, a pipe or a socket');
  found.set(name, real);
  if (found.size > MOST_FILES) refuse(`at most ${MOST_FILES} files`, 'more files');
}

async function rowOf(root: string, found: ReadonlyMap<string, string>): Promise<TaskRow> {
  const isIgnored = await ignoredIn(root);
  const digest = createHash('sha256');
  const files: Record<string, TaskRowFile> = {};
  let storedBytes = 0;
  // Harbor sorts the paths by code points. This comparison has the same order for characters of the Basic Multilingual Plane.
  for (const name of [...found.keys()].sort()) {
    const path = found.get(name) ?? '';
    const { size, mode } = await stat(path);
    const content = size <= MOST_TASK_BYTES ? await readFile(path) : null;
    if (!isIgnored(name)) digest.update(`${name}\0${await hashOf(name, path, content)}\n`);
    const isStored = content !== null && storedBytes + size <= MOST_TASK_BYTES;
    if (isStored) storedBytes += size;
    files[name] = {
      ...(isStored ? { base64: content.toString('base64') } : {}),
      bytes: size,
      executable: (mode & 0o111) !== 0,
    };
  }
  return { digest: `sha256:${digest.digest('hex')}`, files };
}

async function hashOf(name: string, path: string, content: Buffer | null): Promise<string> {
  if (content !== null) return createHash('sha256').update(content).digest('hex');
  const hash = createHash('sha256');
  try {
    for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  } catch (error) {
    throw new BadFile(name, 'a readable file', errorMessage(error), 'remove it from the task');
  }
  return hash.digest('hex');
}

async function ignoredIn(root: string): Promise<(name: string) => boolean> {
  const text = await readFile(join(root, '.gitignore'), 'utf8').catch(() => null);
  const patterns = ignore().add(text ?? IGNORED);
  return (name) => patterns.ignores(name);
}
