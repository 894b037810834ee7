/** Reads the files that the tests left in their container. */

import type { Container } from '@swefarm/sandbox';
import { errorMessage, type InstancePlan, RolloutFailure, SwefarmError } from '@swefarm/shared';

/**
 * Returns the files of the plan that the script left, by path. A file over `logLimit` bytes counts as absent. Ends the container first, so
 * that no process changes the files. Throws RolloutFailure `sandbox_lost` when a file cannot be read.
 */
export async function filesLeft(
  container: Container,
  { files, outcomes }: InstancePlan,
  { logLimit, signal }: { logLimit: number; signal: AbortSignal },
): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  const paths = new Set([...files, ...('file' in outcomes ? [outcomes.file] : [])]);
  if (paths.size === 0) return found;
  const remains = await container.end?.(signal);
  for (const path of paths) {
    const reading = remains
      ? remains.getLinkedFile(path, logLimit, signal)
      : container.getFile(path, logLimit, signal);
    const content = await reading.catch((error: unknown) => {
      signal.throwIfAborted();
      if (error instanceof SwefarmError && error.code === 'file_too_large') return null;
      if (error instanceof RolloutFailure) throw error;
      throw new RolloutFailure('sandbox_lost', `reading ${path}: ${errorMessage(error)}`, { cause: error });
    });
    if (content) found[path] = content.toString('utf8');
  }
  return found;
}
