/** Measures the time in which at least one thing runs. */

/** @param pausedSeconds seconds that do not count, up to now */
export function createStopwatch(pausedSeconds: () => number) {
  const now = (): number => performance.now() / 1000 - pausedSeconds();
  let running = 0;
  let since = 0;
  let before = 0;
  return {
    /** Dispose the returned object when the thing ends. */
    start(): Disposable {
      if (running++ === 0) since = now();
      return {
        [Symbol.dispose]() {
          if (--running === 0) before += now() - since;
        },
      };
    },
    seconds: (): number => before + (running > 0 ? now() - since : 0),
  };
}
