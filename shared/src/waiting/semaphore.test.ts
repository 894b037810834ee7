import { expect, test } from 'vitest';
import { createSemaphore } from './semaphore.ts';

test('work is limited to the slots, and a failure releases its slot', async () => {
  const semaphore = createSemaphore(2);
  let running = 0;
  let most = 0;
  const work = async (fails: boolean): Promise<void> => {
    most = Math.max(most, ++running);
    await new Promise((resolve) => setImmediate(resolve));
    running--;
    if (fails) throw new Error('no');
  };
  const ended = await Promise.allSettled(
    [0, 1, 2, 3, 4, 5].map((n) => semaphore.run(() => work(n % 2 === 0))),
  );
  expect(ended.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
  expect(most).toBe(2);
});

test('a gap separates starts, also with free slots', async () => {
  const semaphore = createSemaphore(8, 30);
  const began: number[] = [];
  await Promise.all([0, 1, 2, 3].map(() => semaphore.run(async () => void began.push(performance.now()))));
  const gaps = began.slice(1).map((at, index) => at - (began[index] ?? 0));
  // A late timer shortens the next gap, so only the sum is checked.
  expect(gaps.reduce((sum, gap) => sum + gap, 0)).toBeGreaterThan(60);
});

test('an aborted waiter takes no slot, and a release counts once', async () => {
  const semaphore = createSemaphore(1);
  const giveBack = await semaphore.acquire();
  const left = new AbortController();
  const leaving = semaphore.acquire(left.signal);
  const staying = semaphore.acquire();
  left.abort(new Error('left'));
  await expect(leaving).rejects.toThrow('left');
  giveBack();
  giveBack();
  const third = semaphore.acquire();
  (await staying)();
  (await third)();
  await expect(semaphore.acquire(AbortSignal.abort(new Error('too late')))).rejects.toThrow('too late');
});
