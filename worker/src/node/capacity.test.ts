import { expect, test } from 'vitest';
import { slotsOf } from './capacity.ts';

const GIB = 1024 ** 3;
const config = {
  concurrency: 'auto',
  node_cpus: 16,
  node_memory_bytes: 128 * GIB,
  node_disk_bytes: 'auto',
  rollout_cpus: 0.25,
  rollout_memory_bytes: 2 * GIB,
  rollout_disk_bytes: GIB,
} as const;

test('the scarcest of CPU, memory and disk limits the rollouts, to at least one', () => {
  expect(slotsOf(config, 500 * GIB)).toBe(64);
  expect(slotsOf({ ...config, node_cpus: 4 }, 500 * GIB)).toBe(16);
  expect(slotsOf({ ...config, node_memory_bytes: 31 * GIB }, 500 * GIB)).toBe(15);
  expect(slotsOf(config, 9.5 * GIB)).toBe(9);
  expect(slotsOf({ ...config, rollout_disk_bytes: 5 * GIB }, 9.5 * GIB)).toBe(1);
  expect(slotsOf({ ...config, node_disk_bytes: 12 * GIB }, 500 * GIB)).toBe(12);
  expect(slotsOf(config, 0)).toBe(1);
  expect(slotsOf(config, null)).toBe(64);
});

test('a configured concurrency overrides the measured one', () => {
  expect(slotsOf({ ...config, concurrency: 200 }, 0)).toBe(200);
});
