import { execFileSync } from 'node:child_process';
import { chmod, chown, mkdir, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { beforeEach, expect, test } from 'vitest';
import { ownFolder } from './folder.ts';

const isRoot = process.getuid?.() === 0;
const STRANGER = 54_321;
const SCRATCH = { setting: 'scratch_dir', mayBeShared: true };

let folder: string;
beforeEach(async () => {
  folder = temporaryFolder('folder');
  await chmod(folder, 0o1777);
});

const modeOf = async (path: string): Promise<string> => ((await stat(path)).mode & 0o7777).toString(8);
const refused = (message: RegExp) => ({ code: 'folder_not_ours', message: expect.stringMatching(message) });

test('a missing folder is created without access for others, whatever the umask', async () => {
  const path = join(folder, 'a/b');
  const umask = process.umask(0);
  try {
    expect(await ownFolder(path, SCRATCH)).toBe(path);
  } finally {
    process.umask(umask);
  }
  expect([await modeOf(path), await modeOf(join(folder, 'a'))]).toEqual(['700', '755']);
  await writeFile(join(path, 'kept'), '');
  expect(await ownFolder(path, SCRATCH)).toBe(path);
  expect((await stat(join(path, 'kept'))).isFile()).toBe(true);
});

test('write permission of others is removed; read permission too if the folder is closed', async () => {
  const [open, readable] = [join(folder, 'open'), join(folder, 'readable')];
  await mkdir(open);
  await chmod(open, 0o777);
  await mkdir(readable);
  await chmod(readable, 0o2755);
  await ownFolder(open, SCRATCH);
  await ownFolder(readable, SCRATCH);
  expect([await modeOf(open), await modeOf(readable)]).toEqual(['755', '2755']);
  await ownFolder(readable, { setting: 'images_dir', closed: true });
  expect(await modeOf(readable)).toBe('700');
});

test('a shared directory is accepted for scratch only', async () => {
  expect(await ownFolder(folder, SCRATCH)).toBe(folder);
  expect(await modeOf(folder)).toBe('1777');
  await expect(ownFolder(folder, { setting: 'images_dir' })).rejects.toMatchObject(
    refused(/^images_dir: \S+ is a shared directory.*set images_dir to a folder of your own/),
  );
});

test('an own link is followed, and its target is checked', async () => {
  await mkdir(join(folder, 'disk'));
  await symlink('disk', join(folder, 'link'));
  expect(await ownFolder(join(folder, 'link/scratch'), SCRATCH)).toBe(join(folder, 'disk/scratch'));
  await writeFile(join(folder, 'file'), '');
  await expect(ownFolder(join(folder, 'file'), SCRATCH)).rejects.toMatchObject(refused(/is not a folder/));
  await symlink('round', join(folder, 'round'));
  await expect(ownFolder(join(folder, 'round'), SCRATCH)).rejects.toMatchObject(refused(/circular link/));
});

// Only root can create files of another user.
if (isRoot) {
  test.each([
    ['the folder itself', 'scratch', 'scratch'],
    ['a folder above it, in a place for everybody', 'above', 'above/scratch'],
  ])(
    'somebody else was first: %s is refused by path and owner, and nothing is made',
    async (_, made, asked) => {
      const path = join(folder, made);
      await mkdir(path, { mode: 0o777 });
      await chown(path, STRANGER, STRANGER);
      await expect(ownFolder(join(folder, asked), SCRATCH)).rejects.toMatchObject(
        refused(new RegExp(`^scratch_dir: ${path} belongs to uid ${STRANGER}.*set scratch_dir to a folder`)),
      );
      await expect(stat(join(folder, 'above/scratch'))).rejects.toMatchObject({ code: 'ENOENT' });
    },
  );

  test("another user's link is not followed, even to an own folder", async () => {
    await mkdir(join(folder, 'ours'));
    await symlink(join(folder, 'ours'), join(folder, 'scratch'));
    execFileSync('chown', ['-h', String(STRANGER), join(folder, 'scratch')]);
    await expect(ownFolder(join(folder, 'scratch'), SCRATCH)).rejects.toMatchObject(
      refused(/is a link that belongs|belongs to uid/),
    );
    await expect(ownFolder(join(folder, 'scratch/deep'), SCRATCH)).rejects.toMatchObject(
      refused(/belongs to/),
    );
  });

  test('an own folder with files of another user is refused', async () => {
    const path = join(folder, 'open');
    await mkdir(path);
    await chmod(path, 0o777);
    await writeFile(join(path, 'rootfs-planted'), '');
    await chown(join(path, 'rootfs-planted'), STRANGER, STRANGER);
    await expect(ownFolder(path, SCRATCH)).rejects.toMatchObject(
      refused(/"rootfs-planted" in it belongs to uid 54321/),
    );
  });

  test('root creates nothing in a world-writable directory without the sticky bit', async () => {
    const path = join(folder, 'loose');
    await mkdir(path);
    await chmod(path, 0o777);
    await expect(ownFolder(join(path, 'scratch'), SCRATCH)).rejects.toMatchObject(
      refused(/every user can rename entries of \S+loose: chmod \+t/),
    );
  });
} else {
  test('folders of another user', ({ skip }) => skip('only root can create files of another user'));
}
