import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { beforeEach, expect, test } from 'vitest';
import { replaceFile, replaceWith } from './replace.ts';

let folder: string;
let path: string;
beforeEach(async () => {
  folder = temporaryFolder('replace');
  path = join(folder, 'file.json');
  await writeFile(path, 'old');
});

const content = (): Promise<string> => readFile(path, 'utf8');

test('the content is replaced with the given permissions, and no other file remains', async () => {
  await replaceFile(path, 'new', { mode: 0o640, sync: true });
  expect([await content(), (await stat(path)).mode & 0o777]).toEqual(['new', 0o640]);
  await replaceFile(path, ['a', 'b']);
  expect([await content(), await readdir(folder)]).toEqual(['ab', ['file.json']]);
});

test('a failed or aborted write leaves the old content and no partial file', async () => {
  const failing = replaceWith(path, async (aside) => {
    await writeFile(aside, 'half');
    throw new Error('no room');
  });
  await expect(failing).rejects.toThrow('no room');
  const left = AbortSignal.abort(new Error('left'));
  await expect(replaceFile(path, 'new', { signal: left })).rejects.toThrow('left');
  await expect(replaceFile(join(folder, 'none', 'x'), 'new')).rejects.toThrow('ENOENT');
  expect([await content(), await readdir(folder)]).toEqual(['old', ['file.json']]);
});

test('concurrent writes do not interfere; a partial file of a crash is overwritten', async () => {
  const contents = Array.from({ length: 8 }, (_, index) => String(index).repeat(1_000));
  await Promise.all(contents.map((text) => replaceFile(path, text)));
  expect(contents).toContain(await content());
  const aside = `${path}.new`;
  await writeFile(aside, 'left by a crash');
  await replaceFile(path, 'new', { aside });
  expect([await content(), await readdir(folder)]).toEqual(['new', ['file.json']]);
});

test('a file with a name of maximum length is replaced', async () => {
  path = join(folder, 'x'.repeat(255));
  await replaceFile(path, 'new');
  expect(await content()).toBe('new');
});
