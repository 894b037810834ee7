/** A container of the worker's own that shows whether sandboxes start on this node. */
import { errorMessage } from '@swefarm/shared';
import type { Container } from '../runtime.ts';

/** Starts it and runs one command; null when that works, else what went wrong. Throws the signal's reason. */
export async function tryContainer(
  start: () => Promise<Container>,
  argv: readonly string[],
  signal: AbortSignal,
): Promise<string | null> {
  try {
    await using container = await start();
    const result = await container.exec(argv, { timeoutMs: 10_000, maxOutputBytes: 1_000, signal });
    return result.exitCode === 0 ? null : result.output.toString().trim();
  } catch (error) {
    signal.throwIfAborted();
    return errorMessage(error);
  }
}
