import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { EvaluationLock } from './evaluationlock.ts';

const NEVER = new AbortController().signal;

test('shared work overlaps, work alone does not, and nobody overtakes', async () => {
  const quiet = new EvaluationLock();
  const log: string[] = [];
  const work = (name: string) => async () => {
    log.push(`+${name}`);
    await sleep(5);
    log.push(`-${name}`);
  };
  await Promise.all([
    quiet.shared(work('a'), NEVER),
    quiet.shared(work('b'), NEVER),
    quiet.alone(work('C'), NEVER),
    quiet.shared(work('d'), NEVER),
    quiet.alone(work('E'), NEVER),
  ]);
  expect(log).toEqual(['+a', '+b', '-a', '-b', '+C', '-C', '+d', '-d', '+E', '-E']);
});

test('a failure gives the lock back', async () => {
  const quiet = new EvaluationLock();
  await expect(quiet.alone(() => Promise.reject(new Error('no')), NEVER)).rejects.toThrow('no');
  await expect(quiet.shared(() => Promise.resolve(1), NEVER)).resolves.toBe(1);
});

test('who is aborted leaves the queue at once, and lets those behind it in', async () => {
  const quiet = new EvaluationLock();
  const held = Promise.withResolvers<void>();
  const reader = quiet.shared(() => held.promise, NEVER);
  const abort = new AbortController();
  const alone = quiet.alone(() => Promise.resolve('ran'), abort.signal);
  const behind = quiet.shared(() => Promise.resolve('in'), NEVER);
  abort.abort(new Error('cancelled'));
  await expect(alone).rejects.toThrow('cancelled');
  await expect(behind).resolves.toBe('in');
  await expect(quiet.shared(() => Promise.resolve(1), AbortSignal.abort(new Error('late')))).rejects.toThrow(
    'late',
  );
  held.resolve();
  await reader;
});

describe('when work alone has taken its share of time', () => {
  afterEach(() => void vi.useRealTimers());
  const minutes = (count: number): number => count * 60_000;
  const passing = (ms: number) => () => new Promise<void>((resolve) => setTimeout(resolve, ms));

  test('those who wait work beside it, and one that hangs never stops them again', async () => {
    vi.useFakeTimers();
    const quiet = new EvaluationLock({ share: 0.1, graceMs: 1_000 });
    void quiet.alone(passing(minutes(30)), NEVER);
    let ended = 0;
    for (let n = 0; n < 4; n++) void quiet.shared(passing(1_000), NEVER).then(() => ended++);
    await vi.advanceTimersByTimeAsync(200);
    expect(ended).toBe(0);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(ended).toBe(4);
  });

  test('work alone still runs one at a time, and is not put off for ever by what runs beside it', async () => {
    vi.useFakeTimers();
    const quiet = new EvaluationLock({ share: 0, graceMs: 0 });
    const log: string[] = [];
    void quiet.shared(passing(minutes(60)), NEVER);
    for (const name of ['A', 'B']) {
      void quiet.alone(async () => {
        log.push(`+${name}`);
        await passing(minutes(1))();
        log.push(`-${name}`);
      }, NEVER);
    }
    await vi.advanceTimersByTimeAsync(minutes(3));
    expect(log).toEqual(['+A', '-A', '+B', '-B']);
  });

  test('five that hang, of 64, cost a node of eight slots minutes and not hours', async () => {
    vi.useFakeTimers();
    const from = performance.now();
    const quiet = new EvaluationLock();
    const limit = minutes(30);
    const todo = Array.from({ length: 64 }, (_, n) => (n % 13 === 1 ? limit : minutes(1)));
    let honest = 0;
    const slot = async (): Promise<void> => {
      for (let ms = todo.shift(); ms !== undefined; ms = todo.shift()) {
        await quiet.shared(passing(ms), NEVER);
        if (ms === limit) await quiet.alone(passing(limit), NEVER);
        else honest = Math.max(honest, performance.now() - from);
      }
    };
    const done = Promise.all(Array.from({ length: 8 }, slot));
    await vi.advanceTimersByTimeAsync(minutes(400));
    await done;
    expect(honest).toBeLessThan(minutes(45));
  });
});
