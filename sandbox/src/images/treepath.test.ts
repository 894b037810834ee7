import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { beforeAll, expect, it } from 'vitest';
import { resolveInside } from './treepath.ts';

let root: string;
beforeAll(() => {
  root = temporaryFolder('inside');
  mkdirSync(join(root, 'usr/bin'), { recursive: true });
  writeFileSync(join(root, 'usr/bin/bash'), '');
  symlinkSync('usr/bin', join(root, 'bin'));
  symlinkSync('/usr/bin/bash', join(root, 'shell'));
  symlinkSync('../../../../../../usr', join(root, 'upwards'));
  symlinkSync('circle', join(root, 'circle'));
});

it.each([
  ['/usr/bin/bash', 'usr/bin/bash'],
  ['/bin/bash', 'usr/bin/bash'],
  ['/shell', 'usr/bin/bash'],
  ['/upwards/bin/../bin/bash', 'usr/bin/bash'],
  ['../../usr', 'usr'],
  ['/', ''],
])('%s', async (path, found) => {
  expect(await resolveInside(root, path)).toBe(join(root, found));
});

it.each(['/absent', '/usr/bin/bash/x', '/etc/passwd'])('%s is missing', async (path) => {
  expect(await resolveInside(root, path)).toBeNull();
});

it('a circle of links throws', async () => {
  await expect(resolveInside(root, '/circle')).rejects.toThrow('symlinks');
});
