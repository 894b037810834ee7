/** Starts a container of the worker's own, to check whether sandboxes start on this node. */
import { errorMessage } from '@swefarm/shared';
import type { Container } from '../runtime.ts';

/** Starts it and runs one command; null when that works, else the reason. Throws the signal's reason. */
export async function tryContainer(
  start: () => Promise<Container>,
  argv: readonly string[],
  signal: AbortSignal,
): Promise<string | null> {
  try {
    await using container = await start();
    const result = await container.exec(argv, { timeoutMs: 10_000, maxOutputBytes: 1_000, signal });
    // A node that is slow now may still work.
    if (result.exitCode === 0 || result.timedOut) return null;
    return result.output.toString().trim() || `the command ended with ${result.exitCode} and said nothing`;
  } catch (error) {
    signal.throwIfAborted();
    return errorMessage(error);
  }
}
