/** Checks whether sandboxes start on this node. */
import { errorMessage } from '@swefarm/shared';
import type { Container } from '../runtime.ts';

/** Starts a container and runs one command; returns the problem, or null. Throws the signal's reason. */
export async function tryContainer(
  start: () => Promise<Container>,
  argv: readonly string[],
  signal: AbortSignal,
): Promise<string | null> {
  try {
    await using container = await start();
    const result = await container.exec(argv, { timeoutMs: 10_000, maxOutputBytes: 1_000, signal });
    // A timeout may come from a node that is busy at the moment.
    if (result.exitCode === 0 || result.timedOut) return null;
    return (
      result.output.toString().trim() || `the command ended with exit code ${result.exitCode} without output`
    );
  } catch (error) {
    signal.throwIfAborted();
    return errorMessage(error);
  }
}
