import { execFileSync } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, onTestFinished, test } from 'vitest';
import { diskFree, diskIsFull, freeFiles, watchDisk } from './disk.ts';

test('a file system without inode counts has enough, and an invisible folder is not full', async () => {
  expect(freeFiles({ files: 0, ffree: 0 })).toBe(Number.POSITIVE_INFINITY);
  expect(await diskFree('/does/not/exist')).toBeNull();
  expect(await diskIsFull({ diskFree: () => diskFree('/does/not/exist') })).toBe(false);
});

function smallDisk(size: string) {
  const folder = temporaryFolder('free');
  execFileSync('mount', ['-t', 'tmpfs', '-o', size, 'swefarm-test', folder]);
  onTestFinished(() => void execFileSync('umount', [folder]));
  return { folder, runtime: { diskFree: () => diskFree(folder) } };
}

// Only root can mount.
if (process.getuid?.() === 0) {
  test('a disk without a free inode is full', async () => {
    const { folder, runtime } = smallDisk('size=64m,nr_inodes=2000');
    expect(await diskIsFull(runtime)).toBe(false);
    for (let at = 0; at < 1_500; at++) await writeFile(join(folder, String(at)), '');
    expect(await diskFree(folder)).toBe(0);
    expect(await diskIsFull(runtime)).toBe(true);
  });

  test('a temporarily full disk is reported, unless the watched sandbox filled it', async () => {
    const { folder, runtime } = smallDisk('size=64m');
    let checks = 0;
    using quiet = watchDisk(runtime, async () => false);
    expect(await quiet.wasFull()).toBe(false);
    using neighbour = watchDisk(runtime, async () => false);
    using culprit = watchDisk(runtime, async () => ++checks > 0);
    await writeFile(join(folder, 'filler'), Buffer.alloc(60 * 1024 ** 2));
    while (checks === 0 || !(await neighbour.wasFull())) await sleep(20);
    await rm(join(folder, 'filler'));
    expect(await diskIsFull(runtime)).toBe(false);
    expect(await neighbour.wasFull()).toBe(true);
    expect(await culprit.wasFull()).toBe(false);
  });
}
