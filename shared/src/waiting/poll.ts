import { type Patience, startPatience } from './retry.ts';

/**
 * Calls `look` at least once, until it returns neither null nor false. Returns null when the time or the tries are used up.
 * @throws errors of `look`, the reason of the signal
 */
export async function poll<T>(
  look: () => T | null | false | Promise<T | null | false>,
  options: Patience,
): Promise<T | null> {
  const patience = startPatience(options);
  for (;;) {
    options.signal?.throwIfAborted();
    const found = await look();
    if (found !== null && found !== false) return found;
    if (patience.isOver()) return null;
    await patience.pause();
  }
}
