import { emptyTally } from '@swefarm/trajectories';
import { aLine } from '@swefarm/trajectories/test/result.ts';
import { expect, test } from 'vitest';
import { barLine, duration, type ProgressCounts, plainLine, startProgress } from './progress.ts';

const counts: ProgressCounts = {
  expected: 64,
  sums: { ...emptyTally(), total: 16, resolved: 5, failed: 1, judged: 15, turns_sum: 300 },
  running: 8,
  fresh: 16,
  seconds: 480,
  note: null,
};

test('a line says how far, how well, how fast and how long', () => {
  expect(plainLine(counts)).toBe(
    'swefarm: 16/64 done, 5/15 resolved, 1 failed, about 24 min left, 8 running, 20.0 turns, 2.0/min',
  );
  expect(
    plainLine({ ...counts, sums: { ...counts.sums, total: 64 }, note: 'no worker alive' }),
  ).not.toContain('left');
});

test.each([40, 80, 160])('the bar never exceeds %d columns', (width) => {
  const line = barLine(counts, width);
  expect(line.length).toBeLessThan(width);
  expect(line).toContain('16/64 done');
});

test('durations are read, not computed', () => {
  expect([5, 89, 600, 3 * 3600 + 300].map(duration)).toEqual(['5 s', '89 s', '10 min', '3 h 05 min']);
});

test('without a terminal there are plain lines and no escapes', () => {
  const written: string[] = [];
  const progress = startProgress(2, [aLine()], { write: (text) => written.push(text) });
  progress.add(aLine({ rollout_id: 'r1.a__b-1.1', resolved: false }));
  progress.printLine('a note');
  progress.stop();
  expect(written[0]).toBe('a note\n');
  expect(written[1]).toMatch(/^swefarm: 2\/2 done, 1\/2 resolved, 12\.0 turns/);
  expect(written.join('')).not.toContain('\u001b');
});

test('a terminal has one line that is redrawn, notes stay above it, and the cursor comes back', () => {
  const written: string[] = [];
  const sink = { isTTY: true, columns: 80, write: (text: string) => written.push(text) };
  const progress = startProgress(2, [aLine()], sink);
  progress.add(aLine({ rollout_id: 'r1.a__b-1.1', resolved: false }));
  progress.printLine('a note');
  progress.stop();
  expect(written).toEqual([
    '\u001b[?25l',
    expect.stringMatching(/█░+ 1\/2 done · 1\/1 resolved/),
    '\r\u001b[2Ka note\n',
    expect.stringMatching(/█ 2\/2 done · 1\/2 resolved/),
    '\r\u001b[2K\u001b[?25h',
  ]);
});

test('a terminal that reports 0 columns shows the bar of 80', () => {
  const written: string[] = [];
  const progress = startProgress(2, [aLine()], {
    isTTY: true,
    columns: 0,
    write: (text) => written.push(text),
  });
  progress.stop();
  expect(written.join('')).toContain('1/2 done · 1/1 resolved');
});

test('an evaluation shows no turns, and a check of instances no count of resolved trees', () => {
  expect(plainLine({ ...counts, words: { resolved: true, turns: false } })).not.toContain('turns');
  expect(plainLine({ ...counts, words: { resolved: false, turns: false } })).toBe(
    'swefarm: 16/64 done, 1 failed, about 24 min left, 8 running, 2.0/min',
  );
});
