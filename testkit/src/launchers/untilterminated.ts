/** For programs that start others: terminated, they run their finally blocks instead of leaving processes behind. */

/**
 * Rejects at the first SIGINT, SIGTERM or SIGHUP, and from then on this process no longer dies of them: race the work
 * against it inside of whatever cleans up.
 */
export function untilTerminated(): Promise<never> {
  const terminated = new Promise<never>((_, reject) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => reject(new Error(`told to end by ${signal}`)));
    }
  });
  // The signal may come when nothing races against it any more.
  terminated.catch(() => undefined);
  return terminated;
}
