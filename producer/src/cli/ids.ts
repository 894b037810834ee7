/** Lists of instance ids on command lines. */
import { readFileSync } from 'node:fs';
import { UsageError } from '@swefarm/shared';

/** The ids of `a,b,c` or of `@FILE`. Throws UsageError for a file that cannot be read. */
export function expandIds(given: string, flag: string): string[] {
  if (!given.startsWith('@')) return given.split(',').flatMap((id) => id.trim() || []);
  try {
    return readFileSync(given.slice(1), 'utf8')
      .split(/[\s,]+/)
      .filter(Boolean);
  } catch (error) {
    throw new UsageError(`${flag} ${given}: ${(error as Error).message}`, { cause: error });
  }
}
