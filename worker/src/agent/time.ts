/** The clock for an agent's limits: the machine's own, or a test's. */

export type Time = {
  /** Milliseconds since some fixed instant; never goes back. */
  now(): number;
  /** Calls `then` once after `ms` milliseconds. Dispose the return value to cancel. */
  after(ms: number, then: () => void): Disposable;
};

export const REAL_TIME: Time = {
  now: () => performance.now(),
  after(ms, then) {
    const timer = setTimeout(then, ms);
    return { [Symbol.dispose]: () => clearTimeout(timer) };
  },
};
