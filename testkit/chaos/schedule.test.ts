import { expect, test } from 'vitest';
import { FAULT_KINDS, makeSchedule, STAGES } from './schedule.ts';

const long = (seed: number) => makeSchedule({ seed, workers: 3, short: false, led: true });

test('a seed determines the schedule', () => {
  expect(long(11)).toEqual(long(11));
  expect(long(11)).not.toEqual(long(12));
});

test('a long schedule has every kind, and kills and stops workers at every stage', () => {
  const schedule = long(13);
  expect(new Set(schedule.map(({ kind }) => kind))).toEqual(new Set(FAULT_KINDS));
  for (const kind of ['worker_kill', 'worker_stop'])
    expect(new Set(schedule.filter((one) => one.kind === kind).map(({ stage }) => stage))).toEqual(
      new Set(STAGES),
    );
});

test('a short schedule has no faults of the engine', () => {
  const kinds = makeSchedule({ seed: 1, workers: 3, short: true, led: true }).map(({ kind }) => kind);
  const left = ['engine_restart', 'redis_pause'];
  expect(new Set(kinds)).toEqual(new Set(FAULT_KINDS.filter((kind) => !left.includes(kind))));
});

test('Redis fails over only if it has a standby', () => {
  const kinds = makeSchedule({ seed: 2, workers: 3, short: false, led: false }).map(({ kind }) => kind);
  expect(new Set(kinds)).toEqual(new Set(FAULT_KINDS.filter((kind) => kind !== 'redis_failover')));
});

test('faults are sorted, and leave enough work to observe the recovery', () => {
  const shares = long(12).map(({ at }) => at);
  expect(shares).toEqual(shares.toSorted((a, b) => a - b));
  expect(shares.at(-1)).toBeLessThan(0.85);
});
