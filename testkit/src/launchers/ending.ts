/** For programs that start others: told to end, they go through their finally blocks instead of leaving everything behind. */

/**
 * Rejects at the first SIGINT, SIGTERM or SIGHUP, and from then on this process no longer dies of them: race the work
 * against it inside of whatever cleans up.
 */
export function toldToEnd(): Promise<never> {
  const told = new Promise<never>((_, reject) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => reject(new Error(`told to end by ${signal}`)));
    }
  });
  // It may come when nobody races against it any more.
  told.catch(() => undefined);
  return told;
}
