import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Pause, startDeadline } from './deadline.ts';

/** A pause that the test starts and ends. */
function switchable(): Pause & { turn(on: boolean): void } {
  let since: number | null = null;
  let total = 0;
  const listeners = new Set<() => void>();
  return {
    get paused() {
      return since !== null;
    },
    seconds: () => (total + (since === null ? 0 : performance.now() - since)) / 1000,
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    turn(on) {
      if (!on && since !== null) total += performance.now() - since;
      since = on ? performance.now() : null;
      for (const listener of listeners) listener();
    },
  };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('it fires once, after its seconds', () => {
  const over = vi.fn();
  using deadline = startDeadline(10, switchable(), over);
  vi.advanceTimersByTime(9_000);
  expect(over).not.toHaveBeenCalled();
  expect(deadline.remainingSeconds()).toBeCloseTo(1);
  vi.advanceTimersByTime(20_000);
  expect(over).toHaveBeenCalledTimes(1);
  expect(deadline.remainingSeconds()).toBe(0);
});

test('it does not run while the policy is paused', () => {
  const over = vi.fn();
  const pause = switchable();
  using deadline = startDeadline(10, pause, over);
  vi.advanceTimersByTime(6_000);
  pause.turn(true);
  vi.advanceTimersByTime(3_600_000);
  expect(deadline.remainingSeconds()).toBeCloseTo(4);
  pause.turn(false);
  vi.advanceTimersByTime(3_900);
  expect(over).not.toHaveBeenCalled();
  vi.advanceTimersByTime(200);
  expect(over).toHaveBeenCalledTimes(1);
});

test('started in a pause it begins at the end of the pause; disposed it never fires', () => {
  const over = vi.fn();
  const pause = switchable();
  pause.turn(true);
  const deadline = startDeadline(1, pause, over);
  vi.advanceTimersByTime(10_000);
  pause.turn(false);
  expect(deadline.remainingSeconds()).toBeCloseTo(1);
  deadline[Symbol.dispose]();
  vi.advanceTimersByTime(10_000);
  expect(over).not.toHaveBeenCalled();
});
