/** A time limit that excludes the seconds in which the policy is paused. */
import { untilAborted } from '@swefarm/shared';

/** Times in which the trainer pauses the policy; the agent's clocks stop meanwhile. */
export interface Pause {
  readonly paused: boolean;
  seconds(): number;
  /** Calls the listener at each start and end of a pause; returns a function that unsubscribes. */
  onChange(listener: () => void): () => void;
}

/** Creates a pause that lasts while at least one reason is set. */
export function createPause() {
  const reasons = new Set<unknown>();
  const listeners = new Set<() => void>();
  let since: number | null = null;
  let pausedMs = 0;
  const pause: Pause = {
    get paused() {
      return since !== null;
    },
    seconds: () => (pausedMs + (since === null ? 0 : performance.now() - since)) / 1000,
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
  return {
    pause,
    set(reason: unknown, paused: boolean): void {
      if (paused) reasons.add(reason);
      else reasons.delete(reason);
      if (reasons.size > 0 === pause.paused) return;
      if (since !== null) pausedMs += performance.now() - since;
      since = since === null ? performance.now() : null;
      for (const listener of [...listeners]) listener();
    },
  };
}

/** Returns a pause that lasts while one of these pauses does. Disposing it stops following them. */
export function unionOf(...pauses: readonly Pause[]): Pause & Disposable {
  const { pause, set } = createPause();
  const stops = pauses.map((one) => {
    set(one, one.paused);
    return one.onChange(() => set(one, one.paused));
  });
  return Object.assign(pause, {
    [Symbol.dispose]: () => {
      for (const stop of stops) stop();
    },
  });
}

/** Resolves when the policy is not paused. Throws the signal's reason when aborted. */
export async function untilServing(pause: Pause, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (!pause.paused) return;
  const serving = Promise.withResolvers<void>();
  const stop = pause.onChange(() => pause.paused || serving.resolve());
  await untilAborted(serving.promise, signal).finally(stop);
}

/** Clock and timers of a deadline; tests use their own. */
export type Time = {
  /** Returns monotonic milliseconds. */
  now(): number;
  /** Calls `then` once after `ms` milliseconds. Disposing the return value cancels the call. */
  after(ms: number, then: () => void): Disposable;
};

export const REAL_TIME: Time = {
  now: () => performance.now(),
  after(ms, then) {
    const timer = setTimeout(then, ms);
    return { [Symbol.dispose]: () => clearTimeout(timer) };
  },
};

export type Deadline = ReturnType<typeof startDeadline>;

const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Calls `onOver` once after `seconds`, not counting pauses. Dispose the deadline to stop the clock. */
export function startDeadline(seconds: number, pause: Pause, onOver: () => void, time: Time = REAL_TIME) {
  let started = time.now();
  let pausedBefore = pause.seconds();
  let over = false;
  let timer: Disposable | null = null;
  /** Returns the seconds until the deadline; 0 after it. */
  const remainingSeconds = (): number => {
    if (over) return 0;
    const spent = (time.now() - started) / 1000 - (pause.seconds() - pausedBefore);
    return Math.max(0, seconds - spent);
  };
  const arm = () => {
    timer?.[Symbol.dispose]();
    timer = null;
    if (pause.paused || over) return;
    const left = remainingSeconds();
    if (left > 0) {
      timer = time.after(Math.min(Math.ceil(left * 1000), LONGEST_TIMER_MS), arm);
      return;
    }
    over = true;
    onOver();
  };
  const stop = pause.onChange(arm);
  arm();
  return {
    remainingSeconds,
    /**
     * Restores the full time, unless the deadline has passed. The call is cheap enough for every chunk of an answer: the timer is not
     * replaced, and checks the remaining time when it fires.
     */
    restart(): void {
      started = time.now();
      pausedBefore = pause.seconds();
    },
    [Symbol.dispose](): void {
      timer?.[Symbol.dispose]();
      stop();
    },
  };
}
