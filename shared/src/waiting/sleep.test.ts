import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { sleep, sleepAtMost } from './sleep.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('sleep lasts its time', async () => {
  let over = false;
  const asleep = sleep(100).then(() => {
    over = true;
  });
  await vi.advanceTimersByTimeAsync(99);
  expect(over).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  await asleep;
});

test('an abort ends a sleep with the reason, without a timer', async () => {
  const controller = new AbortController();
  const asleep = sleep(100, controller.signal);
  const quiet = sleepAtMost(100, controller.signal);
  controller.abort(new Error('left'));
  await expect(asleep).rejects.toThrow('left');
  await expect(quiet).resolves.toBeUndefined();
  await expect(sleep(100, controller.signal)).rejects.toThrow('left');
  expect(vi.getTimerCount()).toBe(0);
});
