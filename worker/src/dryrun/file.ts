import { readFile } from 'node:fs/promises';
import { DryRun, errorMessage, UsageError } from '@swefarm/shared';
import { playOf } from './play.ts';

/** Reads the file of a dry run. Throws UsageError if it cannot be read. */
export async function readPlay(file: string) {
  try {
    const dryRun = DryRun.parse(JSON.parse(await readFile(file, 'utf8')));
    return { play: playOf(dryRun), concurrency: dryRun.script.concurrency };
  } catch (error) {
    throw new UsageError(`${file}: no dry run of this version: ${errorMessage(error)}`, { cause: error });
  }
}
