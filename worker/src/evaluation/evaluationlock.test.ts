import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { EvaluationLock } from './evaluationlock.ts';

const NEVER = new AbortController().signal;

test('shared work overlaps, exclusive work does not, and the order is first in, first out', async () => {
  const lock = new EvaluationLock();
  const log: string[] = [];
  const work = (name: string) => async () => {
    log.push(`+${name}`);
    await sleep(5);
    log.push(`-${name}`);
  };
  await Promise.all([
    lock.shared(work('a'), NEVER),
    lock.shared(work('b'), NEVER),
    lock.alone(work('C'), NEVER),
    lock.shared(work('d'), NEVER),
    lock.alone(work('E'), NEVER),
  ]);
  expect(log).toEqual(['+a', '+b', '-a', '-b', '+C', '-C', '+d', '-d', '+E', '-E']);
});

test('a failure releases the lock', async () => {
  const lock = new EvaluationLock();
  await expect(lock.alone(() => Promise.reject(new Error('no')), NEVER)).rejects.toThrow('no');
  await expect(lock.shared(() => Promise.resolve(1), NEVER)).resolves.toBe(1);
});

test('aborted work leaves the queue at once and admits the work behind it', async () => {
  const lock = new EvaluationLock();
  const running = Promise.withResolvers<void>();
  const first = lock.shared(() => running.promise, NEVER);
  const abort = new AbortController();
  const alone = lock.alone(() => Promise.resolve('ran'), abort.signal);
  const behind = lock.shared(() => Promise.resolve('in'), NEVER);
  abort.abort(new Error('cancelled'));
  await expect(alone).rejects.toThrow('cancelled');
  await expect(behind).resolves.toBe('in');
  await expect(lock.shared(() => Promise.resolve(1), AbortSignal.abort(new Error('late')))).rejects.toThrow(
    'late',
  );
  running.resolve();
  await first;
});

describe('when exclusive work has used its share of time', () => {
  afterEach(() => void vi.useRealTimers());
  const minutes = (count: number): number => count * 60_000;
  const passing = (ms: number) => () => new Promise<void>((resolve) => setTimeout(resolve, ms));

  test('waiting work runs beside exclusive work that hangs', async () => {
    vi.useFakeTimers();
    const lock = new EvaluationLock({ share: 0.1, graceMs: 1_000 });
    void lock.alone(passing(minutes(30)), NEVER);
    let ended = 0;
    for (let n = 0; n < 4; n++) void lock.shared(passing(1_000), NEVER).then(() => ended++);
    await vi.advanceTimersByTimeAsync(200);
    expect(ended).toBe(0);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(ended).toBe(4);
  });

  test('exclusive work still runs one at a time, and shared work does not delay it', async () => {
    vi.useFakeTimers();
    const lock = new EvaluationLock({ share: 0, graceMs: 0 });
    const log: string[] = [];
    void lock.shared(passing(minutes(60)), NEVER);
    for (const name of ['A', 'B']) {
      void lock.alone(async () => {
        log.push(`+${name}`);
        await passing(minutes(1))();
        log.push(`-${name}`);
      }, NEVER);
    }
    await vi.advanceTimersByTimeAsync(minutes(3));
    expect(log).toEqual(['+A', '-A', '+B', '-B']);
  });

  test('5 of 64 evaluations that hang delay a node of 8 slots by minutes, not hours', async () => {
    vi.useFakeTimers();
    const from = performance.now();
    const lock = new EvaluationLock();
    const limit = minutes(30);
    const todo = Array.from({ length: 64 }, (_, n) => (n % 13 === 1 ? limit : minutes(1)));
    let honest = 0;
    const slot = async (): Promise<void> => {
      for (let ms = todo.shift(); ms !== undefined; ms = todo.shift()) {
        await lock.shared(passing(ms), NEVER);
        if (ms === limit) await lock.alone(passing(limit), NEVER);
        else honest = Math.max(honest, performance.now() - from);
      }
    };
    const done = Promise.all(Array.from({ length: 8 }, slot));
    await vi.advanceTimersByTimeAsync(minutes(400));
    await done;
    expect(honest).toBeLessThan(minutes(45));
  });
});
