import { expect, test } from 'vitest';
import { clip, plainLine, renderScreen, type ScreenOptions } from './screen.ts';
import type { FarmView, WatchedRun } from './watching.ts';

const run = (over: Partial<WatchedRun> = {}): WatchedRun => ({
  ...{ run_id: 'r1', created_at: '', kind: 'training', agent: 'mini', model: 'm' },
  ...{
    instances: 10,
    group_size: 4,
    rollouts: 40,
    committed: 20,
    judged: 18,
    resolved: 9,
    scored: 0,
    failed: 2,
  },
  ...{ cancelled: 0, turns_mean: 12.25, reward_mean: 0.5, failures: { image_pull: 2 } },
  ...{ paused: null, draws: null, per_minute: 10, groups_done: 4, groups: 10, running: 3 },
  ...over,
});

const now = (over: Partial<FarmView> = {}): FarmView => ({
  at: 0,
  redis: 'redis://h:1',
  unreadable: [],
  admission: [],
  queue: { prioritized: 17, active: 3 },
  workers: [
    ...[null, 'disk is full\u001b[2J'].map((paused, at) => ({
      ...{ worker: `w${at}`, node: `n${at}`, runtime: 'docker', slots: 2, active: 1, started_at: 0 },
      ...{ metrics: null, paused },
    })),
  ],
  runs: [run()],
  stages: { agent: 2, evaluation: 1 },
  seconds: { model: 20, image: 0 },
  failures: [
    {
      rollout_id: 'r1.a__b-1.0',
      node: 'n0',
      finished_at: 0,
      cause: 'image/image_pull',
      message: '503\u0007\nx',
    },
  ],
  ...over,
});

const options = (width: number, height = 40): ScreenOptions => ({
  width,
  height,
  paint: (_style, text) => text,
});

test.each([80, 160])('at %i columns the screen fits, and answers what is asked at night', (width) => {
  const text = renderScreen(now(), options(width));
  const lines = text.split('\n');
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(width);
  for (const fact of [
    '17 wait, 2 of 4 slots busy (agent 2, evaluation 1)',
    '20/40',
    '50.0 %',
    '2 min',
    'mean seconds: model 20.0',
    'recent failures  image_pull 2',
    'image/image_pull: 503',
  ])
    expect(text).toContain(fact);
  // Paused workers come first, because the reader looks for them.
  expect(text.indexOf('paused: disk is full')).toBeLessThan(text.indexOf('claiming'));
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what must not be there
  expect(text).not.toMatch(/[\u0007\u001b]/);
});

test('an empty farm says what to do; many failures leave the rest on screen', () => {
  const empty = renderScreen(now({ runs: [], workers: [], failures: [], seconds: {} }), options(80));
  expect(empty).toContain('swefarm submit');
  expect(empty).toContain('no worker is alive');
  const [failure] = now().failures;
  const failures = Array.from({ length: 50 }, () => failure).filter((one) => one !== undefined);
  const full = renderScreen(now({ failures }), options(80, 24)).split('\n');
  expect(full).toHaveLength(23);
  expect(full[0]).toContain('swefarm');
});

test('a line for logs sums the runs', () => {
  const line = plainLine(now({ runs: [run(), run({ run_id: 'r2' })] }));
  expect(line).toBe(
    'swefarm: 40/80 done, 18/36 resolved (50.0 %), 4 failed, 17 wait, 6 run on 2 workers, 20.0/min, ' +
      'last failure image/image_pull: 503␇ x',
  );
});

test('colours take no width and end with the line', () => {
  expect(clip('abc', 3)).toBe('abc');
  expect(clip('abcd', 3)).toBe('ab…');
  expect(clip('\u001b[31mabcd\u001b[39m', 4)).toBe('\u001b[31mabcd\u001b[39m');
  expect(clip('\u001b[31mabcd\u001b[39m', 3)).toBe('\u001b[31mab…\u001b[0m');
});
