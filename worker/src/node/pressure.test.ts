import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ArtifactStore } from '@swefarm/shared';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, onTestFinished, test } from 'vitest';
import { availableBytes, watchPressure } from './pressure.ts';

const artifacts = { usage: async () => ({ used_bytes: 0, budget_bytes: 1e12 }) } as unknown as ArtifactStore;
const reasonWith = async (memoryReserveBytes: number): Promise<string | null> => {
  using pressure = watchPressure({ artifacts, scratchDir: tmpdir(), memoryReserveBytes });
  return pressure.reason();
};

test('too little available memory is a reason to claim nothing', async () => {
  expect(await reasonWith(2 ** 60)).toMatch(/^memory: \d+ bytes are available on the node$/);
  expect((await reasonWith(0)) ?? '').not.toMatch(/memory/);
});

test('available memory is parsed from /proc/meminfo', () => {
  expect(availableBytes('MemTotal:       24609332 kB\nMemAvailable:     1024 kB\n')).toBe(1024 ** 2);
  expect(availableBytes('')).toBeNull();
});

// Only root may mount.
if (process.getuid?.() === 0) {
  test('too few free inodes are a reason to claim nothing', async () => {
    const scratchDir = temporaryFolder('pressure');
    const size = 'size=4g,nr_inodes=1000,mode=0700';
    execFileSync('mount', ['-t', 'tmpfs', '-o', size, 'swefarm-test', scratchDir]);
    onTestFinished(() => void execFileSync('umount', [scratchDir]));
    using pressure = watchPressure({ artifacts, scratchDir, memoryReserveBytes: 0 });
    expect((await pressure.reason()) ?? '').not.toMatch(/inodes/);
    for (let at = 0; at < 960; at++) await writeFile(join(scratchDir, String(at)), '');
    expect(await pressure.reason()).toMatch(/^disk: \d+ inodes are free at/);
  });
}
