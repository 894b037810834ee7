import { tmpdir } from 'node:os';
import type { ArtifactStore } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { availableBytes, watchPressure } from './pressure.ts';

const artifacts = { usage: async () => ({ used_bytes: 0, budget_bytes: 1e12 }) } as unknown as ArtifactStore;
const reasonWith = async (memoryReserveBytes: number): Promise<string | null> => {
  using pressure = watchPressure({ artifacts, scratchDir: tmpdir(), memoryReserveBytes });
  return pressure.reason();
};

test('a node with too little memory left claims nothing and says so', async () => {
  expect(await reasonWith(2 ** 60)).toMatch(/^memory: \d+ bytes are available on the node$/);
  expect((await reasonWith(0)) ?? '').not.toMatch(/memory/);
});

test('available memory is read as the kernel writes it', () => {
  expect(availableBytes('MemTotal:       24609332 kB\nMemAvailable:     1024 kB\n')).toBe(1024 ** 2);
  expect(availableBytes('')).toBeNull();
});
