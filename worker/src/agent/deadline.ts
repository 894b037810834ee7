/** A time limit that does not count the seconds in which the policy stands still. */
import type { Pause } from './pause.ts';

export type Deadline = Disposable & {
  /** 0 once it is over. */
  remainingSeconds(): number;
};

/** Node's longest timer. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Calls `onOver` once when the seconds are used up. Dispose it to stop the clock. */
export function startDeadline(seconds: number, pause: Pause, onOver: () => void): Deadline {
  const started = performance.now();
  const pausedBefore = pause.seconds();
  let over = false;
  let timer: NodeJS.Timeout | undefined;
  const remainingSeconds = (): number => {
    if (over) return 0;
    const spent = (performance.now() - started) / 1000 - (pause.seconds() - pausedBefore);
    return Math.max(0, seconds - spent);
  };
  const arm = () => {
    clearTimeout(timer);
    if (pause.paused || over) return;
    const left = remainingSeconds();
    if (left > 0) {
      timer = setTimeout(arm, Math.min(Math.ceil(left * 1000), LONGEST_TIMER_MS));
      return;
    }
    over = true;
    onOver();
  };
  const stop = pause.onChange(arm);
  arm();
  return {
    remainingSeconds,
    [Symbol.dispose]() {
      clearTimeout(timer);
      stop();
    },
  };
}
