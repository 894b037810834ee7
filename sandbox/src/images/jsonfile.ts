import { readFile } from 'node:fs/promises';
import { tryParseJson } from '@swefarm/shared';
import type { z } from 'zod';

/** Reads a record; null for a file that is absent, or that is invalid, for example truncated by a power cut. */
export async function readJsonFile<T>(path: string, schema: z.ZodType<T>): Promise<T | null> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return '';
  });
  return schema.safeParse(tryParseJson(text)).data ?? null;
}
