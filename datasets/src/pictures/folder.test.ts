import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MOST } from '@swefarm/shared';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, test } from 'vitest';
import { openPictureFolder, PICTURE_LIST } from './folder.ts';

const PNG = Buffer.from('\x89PNG\r\n\x1a\n and more', 'latin1');

function folderWith(list: unknown[] | string, files: Record<string, Buffer | string> = {}): string {
  const outer = temporaryFolder('pictures');
  writeFileSync(join(outer, 'secret.png'), PNG);
  const folder = join(outer, 'pictures');
  mkdirSync(folder);
  const text = typeof list === 'string' ? list : list.map((line) => `${JSON.stringify(line)}\n`).join('');
  writeFileSync(join(folder, PICTURE_LIST), text);
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  return folder;
}

const found = (file: string, files: Record<string, Buffer | string> = {}, more: object = {}) =>
  openPictureFolder(folderWith([{ address: 'a', file, ...more }], files)).find('a');

test('the bytes of a picture decide its type, not its name', () => {
  const sha256 = createHash('sha256').update(PNG).digest('hex');
  expect(found('shot.jpg', { 'shot.jpg': PNG }, { sha256 })).toEqual({
    address: 'a',
    file: { media_type: 'image/png', sha256, bytes: PNG.length, data: PNG.toString('base64') },
  });
});

test.each<[string, string, Record<string, Buffer | string>, RegExp]>([
  ['a path that leaves the folder', '../secret.png', {}, /lies outside of the folder/],
  ['an absolute path', '/etc/hostname', {}, /is no path within the folder/],
  ['a path with a zero byte', 'a\0.png', {}, /is no path within the folder/],
  ['a file that is not there', 'b.png', {}, /cannot be read \(ENOENT/],
  ['the folder itself', '.', {}, /lies outside of the folder/],
  [
    'an SVG',
    'a.png',
    { 'a.png': '<?xml version="1.0"?><svg onload="x()"/>' },
    /is an SVG; expected image\/png/,
  ],
  ['a page', 'a.png', { 'a.png': '<html>404</html>' }, /is a page of HTML or XML/],
  ['a text', 'a.png', { 'a.png': 'version https://git-lfs…' }, /is no picture of a known type/],
  ['an empty file', 'a.png', { 'a.png': '' }, /is empty/],
  [
    '10 MB',
    'a.png',
    { 'a.png': Buffer.concat([PNG, Buffer.alloc(10 * 1000 ** 2)]) },
    new RegExp(`has 10000017 bytes; a picture has at most ${MOST.pictureBytes}`),
  ],
])('%s is no picture, by name', (_what, file, files, problem) => {
  const picture = found(file, files);
  expect(picture).toEqual({ address: 'a', problem: expect.stringMatching(problem) });
});

test('a link out of the folder, a named pipe and a changed file are refused', () => {
  const folder = folderWith([
    { address: 'link', file: 'link.png' },
    { address: 'pipe', file: 'pipe.png' },
    { address: 'changed', file: 'changed.png', sha256: '0'.repeat(64) },
  ]);
  symlinkSync('../secret.png', join(folder, 'link.png'));
  execFileSync('sh', ['-c', 'mkfifo "$1"', 'sh', join(folder, 'pipe.png')]);
  writeFileSync(join(folder, 'changed.png'), PNG);
  const source = openPictureFolder(folder);
  expect(source.find('link').problem).toMatch(/lies outside of the folder/);
  expect(source.find('pipe').problem).toMatch(/is no regular file/);
  expect(source.find('changed').problem).toMatch(/has another checksum/);
  expect(source.find('other').problem).toMatch(/is not named in .*pictures\.jsonl/);
});

test.each([
  ['{"address": "a"', /pictures\.jsonl: line 1: is not JSON/],
  ['\n{"address": "a"}\n', /pictures\.jsonl: line 2: file: /],
  ['{"address": "a", "file": "a", "sha256": "x"}', /line 1: sha256: /],
])('a list that cannot be read is refused by line: %s', (text, message) => {
  expect(() => openPictureFolder(folderWith(text))).toThrow(message);
});

test('the error for a folder without a list names the remedy', () => {
  expect(() => openPictureFolder(join(tmpdir(), 'nowhere-at-all'))).toThrow(
    /swefarm dataset pictures makes it/,
  );
});
