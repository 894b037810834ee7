import { readFile } from 'node:fs/promises';
import { DryRun, problemOf, tryParseJson, UsageError } from '@swefarm/shared';
import { playOf } from './play.ts';

/** Reads the file of a dry run. Throws UsageError for a file of another format or version. */
export async function readPlay(file: string) {
  const read = DryRun.safeParse(tryParseJson(await readFile(file, 'utf8')));
  if (!read.success) throw new UsageError(`${file}: no dry run of this version: ${problemOf(read.error)}`);
  return { play: playOf(read.data), concurrency: read.data.script.concurrency };
}
