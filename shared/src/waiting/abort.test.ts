import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { onAbort, untilAborted, waitAtMost, whenAborted } from './abort.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const never = new Promise<never>(() => undefined);

test('an action runs once, also for an aborted signal, and not after its disposal', () => {
  const controller = new AbortController();
  let calls = 0;
  onAbort(controller.signal, () => calls++);
  onAbort(controller.signal, () => calls++)[Symbol.dispose]();
  onAbort(undefined, () => calls++);
  controller.abort();
  expect(calls).toBe(1);
  onAbort(controller.signal, () => calls++);
  expect(calls).toBe(2);
});

test('an aborted wait rejects with the reason; a later failure of the promise is ignored', async () => {
  const controller = new AbortController();
  const late = Promise.withResolvers<void>();
  const left = untilAborted(late.promise, controller.signal);
  const told = whenAborted(controller.signal);
  controller.abort(new Error('left'));
  await expect(left).rejects.toThrow('left');
  await told;
  await expect(untilAborted(Promise.resolve(1), controller.signal)).rejects.toThrow('left');
  late.reject(new Error('too late to matter'));
  await expect(untilAborted(Promise.resolve(2), new AbortController().signal)).resolves.toBe(2);
});

describe('a wait ends', () => {
  test('by itself, with the value or the error', async () => {
    await expect(waitAtMost(Promise.resolve(3), 1_000)).resolves.toEqual({ by: 'itself', value: 3 });
    await expect(waitAtMost(Promise.reject(new Error('no')), 1_000)).rejects.toThrow('no');
    expect(vi.getTimerCount()).toBe(0);
  });

  test('by its time limit', async () => {
    const ending = waitAtMost(never, 1_000);
    await vi.advanceTimersByTimeAsync(1_000);
    await expect(ending).resolves.toEqual({ by: 'timeout' });
  });

  test('by the signal', async () => {
    const controller = new AbortController();
    const ending = waitAtMost(never, 1_000, controller.signal);
    controller.abort();
    await expect(ending).resolves.toEqual({ by: 'abort' });
    await expect(waitAtMost(never, 1_000, controller.signal)).resolves.toEqual({ by: 'abort' });
    expect(vi.getTimerCount()).toBe(0);
  });
});
