/** Files of a Harbor task by path. */
import type { TaskRowFile } from './folder.ts';

export type TaskFiles = Readonly<Record<string, TaskRowFile>>;

export const textOf = (file: TaskRowFile | undefined): string | null =>
  file?.base64 === undefined ? null : Buffer.from(file.base64, 'base64').toString('utf8');

/** Returns the files of the folders, sorted by path. */
export const filesBelow = (files: TaskFiles, ...folders: string[]): [string, TaskRowFile][] =>
  Object.entries(files)
    .filter(([name]) => folders.some((folder) => name.startsWith(folder)))
    .sort(([a], [b]) => (a < b ? -1 : 1));
