/** The clock that an agent's limits are measured by: the machine's own, unless a test has another one. */

export type Time = {
  /** Milliseconds from some instant on; never set back. */
  now(): number;
  /** Calls once after so many milliseconds. Dispose what it returns to take that back. */
  after(ms: number, then: () => void): Disposable;
};

export const REAL_TIME: Time = {
  now: () => performance.now(),
  after(ms, then) {
    const timer = setTimeout(then, ms);
    return { [Symbol.dispose]: () => clearTimeout(timer) };
  },
};
