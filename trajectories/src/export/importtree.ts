import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isRow, readRows } from '@swefarm/datasets';
import { errorMessage, UsageError } from '@swefarm/shared';
import type { ImportedRollout, ImportProblem } from './importing.ts';

type Json = Record<string, unknown>;

/**
 * Reads the file `path`, or the files below the folder `path` whose names end with `ending`. A TypeError of `read` and invalid JSON
 * become an ImportProblem.
 * @throws UsageError when `path` cannot be read or the folder has no such file
 */
export async function* readTree(
  path: string,
  ending: string,
  read: (file: Json, where: string) => Promise<ImportedRollout> | ImportedRollout,
): AsyncGenerator<ImportedRollout | ImportProblem> {
  let found = 0;
  for await (const file of filesBelow(path, ending)) {
    found += 1;
    yield await orProblem(file, async () => {
      const value: unknown = JSON.parse(await readFile(file, 'utf8'));
      if (!isRow(value)) throw new TypeError('no JSON object');
      return await read(value, file);
    });
  }
  if (found === 0) throw new UsageError(`${path}: has no file that ends in ${ending}`);
}

/** Runs `read`. A TypeError or SyntaxError becomes an ImportProblem. */
async function orProblem(
  where: string,
  read: () => Promise<ImportedRollout>,
): Promise<ImportedRollout | ImportProblem> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof TypeError) && !(error instanceof SyntaxError)) throw error;
    return { where, problem: errorMessage(error) };
  }
}

async function* filesBelow(path: string, ending: string): AsyncGenerator<string> {
  const info = await stat(path).catch((error: unknown) => {
    throw new UsageError(`${path}: cannot be read: ${errorMessage(error)}`, { cause: error });
  });
  if (!info.isDirectory()) {
    yield path;
    return;
  }
  const entries = await readdir(path, { withFileTypes: true });
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const inner = join(path, entry.name);
    if (entry.isDirectory()) yield* filesBelow(inner, ending);
    else if (entry.name.endsWith(ending)) yield inner;
  }
}

/** Returns the text in the field `name`. Throws TypeError if the field is missing or empty. */
export function requireText(file: Json, name: string): string {
  const value = file[name];
  if (typeof value === 'string' && value !== '') return value;
  throw new TypeError(`the field ${name} is missing`);
}

/** Returns the object at a path of fields; an empty object for another value. */
export const objectIn = (file: Json, ...path: string[]): Json =>
  path.reduce((inner, name) => (isRow(inner[name]) ? inner[name] : {}), file);

/** Returns the list in the last field of the path; null for another value. */
export function listIn(file: Json, ...path: string[]): Json[] | null {
  const value = valueIn(file, path);
  return Array.isArray(value) ? (value as Json[]) : null;
}

export function stringIn(file: Json, ...path: string[]): string | null {
  const value = valueIn(file, path);
  return typeof value === 'string' ? value : null;
}

export function numberIn(file: Json, ...path: string[]): number | null {
  const value = valueIn(file, path);
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null;
}

const valueIn = (file: Json, path: readonly string[]): unknown =>
  objectIn(file, ...path.slice(0, -1))[path.at(-1) ?? ''];

/** Reads the rows of a file in any format of {@link readRows}. Throws the errors of `readRows`. */
export async function* importLines(
  path: string,
  read: (row: Json, where: string) => ImportedRollout,
): AsyncGenerator<ImportedRollout | ImportProblem> {
  for await (const row of readRows(path)) {
    const where = `${path} ${row.where}`;
    if ('problem' in row)
      yield { where, problem: `expected ${row.problem.expected}, found ${row.problem.found}` };
    else yield await orProblem(where, async () => read(row.value, where));
  }
}
