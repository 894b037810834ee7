import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { poll } from './poll.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('polls until there is a value', async () => {
  const answers = [null, false, null, 0] as const;
  let looks = 0;
  const found = poll(() => answers[looks++] ?? null, { pauseMs: 10, tries: 9 });
  await vi.runAllTimersAsync();
  expect([await found, looks]).toEqual([0, 4]);
});

test('polls a last time when the time is over, then returns null', async () => {
  const begun = performance.now();
  const looks: number[] = [];
  const look = (): null => {
    looks.push(performance.now() - begun);
    return null;
  };
  const found = poll(look, { pauseMs: 100, withinMs: 250 });
  await vi.runAllTimersAsync();
  expect([await found, looks]).toEqual([null, [0, 100, 200, 250]]);
});

test('an error and an abort end polling', async () => {
  const fails = poll(() => Promise.reject(new Error('broken')), { pauseMs: 10 });
  await expect(fails).rejects.toThrow('broken');
  const controller = new AbortController();
  const waiting = poll(() => false, { pauseMs: 10, signal: controller.signal });
  controller.abort(new Error('left'));
  await expect(waiting).rejects.toThrow('left');
});
