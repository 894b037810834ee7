import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { exponentialBackoff, linearBackoff, type RetryOptions, retry } from './retry.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Returns the times of calls, in milliseconds from the first; calls fail until `works` ms. */
async function callsOf(
  options: Partial<RetryOptions>,
  works: number,
): Promise<{ at: number[]; end: string }> {
  const begun = performance.now();
  const at: number[] = [];
  const call = async (): Promise<string> => {
    at.push(performance.now() - begun);
    if (performance.now() - begun < works) throw new Error('away');
    return 'done';
  };
  const end = retry(call, { pauseMs: 100, isPassing: () => true, ...options }).catch(
    (error: Error) => error.message,
  );
  await vi.runAllTimersAsync();
  return { at, end: await end };
}

test('a temporary failure is retried after growing pauses', async () => {
  expect(await callsOf({ pauseMs: linearBackoff(100, 250) }, 700)).toEqual({
    at: [0, 100, 300, 550, 800],
    end: 'done',
  });
  expect(await callsOf({ pauseMs: exponentialBackoff(100, 500) }, 1_500)).toEqual({
    at: [0, 100, 300, 700, 1_200, 1_700],
    end: 'done',
  });
});

test('the last try starts when the time is over', async () => {
  expect(await callsOf({ withinMs: 250 }, 1_000)).toEqual({ at: [0, 100, 200, 250], end: 'away' });
  expect(await callsOf({ withinMs: 0 }, 1_000)).toEqual({ at: [0], end: 'away' });
});

test('tries are limited, and end at a permanent error', async () => {
  const tries: number[] = [];
  const onRetry = (_: unknown, tried: number): number => tries.push(tried);
  expect(await callsOf({ tries: 3, onRetry }, 1_000)).toEqual({ at: [0, 100, 200], end: 'away' });
  expect(tries).toEqual([1, 2]);
  expect(await callsOf({ isPassing: () => false }, 1_000)).toEqual({ at: [0], end: 'away' });
});

test('an abort ends the pause and the tries', async () => {
  const controller = new AbortController();
  setTimeout(() => controller.abort(new Error('left')), 150);
  expect(await callsOf({ signal: controller.signal }, 1_000)).toEqual({ at: [0, 100], end: 'left' });
  expect(await callsOf({ signal: controller.signal }, 0)).toEqual({ at: [], end: 'left' });
});
