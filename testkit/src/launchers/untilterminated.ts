/** For programs that start others: on a signal they run their finally blocks instead of leaving processes behind. */

/**
 * Rejects at the first SIGINT, SIGTERM or SIGHUP; these signals no longer end this process. Race the work against this
 * promise inside the block that cleans up.
 */
export function untilTerminated(): Promise<never> {
  const terminated = new Promise<never>((_, reject) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => reject(new Error(`told to end by ${signal}`)));
    }
  });
  // The signal may arrive when nothing awaits this promise any more.
  terminated.catch(() => undefined);
  return terminated;
}
