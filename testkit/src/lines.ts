/** Reads and writes files of JSON Lines. */
import { readFile, writeFile } from 'node:fs/promises';

export const linesOf = (rows: readonly unknown[]): string =>
  rows.map((row) => `${JSON.stringify(row)}\n`).join('');

/** Reads the values of a text; empty lines are ignored. */
export const parseLines = <T>(text: string): T[] =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line): T => JSON.parse(line));

export const readLines = async <T>(path: string): Promise<T[]> => parseLines(await readFile(path, 'utf8'));

/** Writes the file and returns its path. */
export async function writeLines(path: string, rows: readonly unknown[]): Promise<string> {
  await writeFile(path, linesOf(rows));
  return path;
}
