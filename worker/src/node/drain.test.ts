import { expect, test } from 'vitest';
import { splitGrace } from './drain.ts';

test('the last 10 s of a grace period, or most of a short one, are for handing back', () => {
  expect(splitGrace(25)).toEqual({ finishMs: 15_000, handBackMs: 9_000, wholeMs: 25_000 });
  expect(splitGrace(5)).toEqual({ finishMs: 1_000, handBackMs: 3_600, wholeMs: 5_000 });
  for (const seconds of [0, 0.5, 1, 3, 12, 600]) {
    const { finishMs, handBackMs, wholeMs } = splitGrace(seconds);
    expect(finishMs + handBackMs).toBeLessThan(wholeMs);
    expect(wholeMs).toBe(Math.max(1, seconds) * 1000);
  }
});
