import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { dataOf, debianMirror } from './debian.ts';
import { temporaryFolder } from './folder.fixture.ts';

async function aptFolder(files: Record<string, string>): Promise<string> {
  const folder = temporaryFolder();
  await mkdir(join(folder, 'sources.list.d'));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  return folder;
}

test('the mirror of apt is found in both forms of its lists', async () => {
  const security = 'deb http://mirror.test/debian-security bookworm-security main\n';
  const line = 'deb [signed-by=/k.gpg arch=amd64] http://mirror.test/debian/ bookworm main\n';
  expect(await debianMirror(await aptFolder({ 'sources.list': security + line }))).toBe(
    'http://mirror.test/debian',
  );
  const block = 'Types: deb\nURIs: https://other.test/pub/debian\nSuites: bookworm\n';
  expect(await debianMirror(await aptFolder({ 'sources.list.d/debian.sources': block }))).toBe(
    'https://other.test/pub/debian',
  );
});

test('a machine without apt gets the public mirror', async () => {
  const ubuntu = 'deb http://mirror.test/ubuntu noble main\n# deb http://mirror.test/debian sid main\n';
  expect(await debianMirror(await aptFolder({ 'sources.list': ubuntu }))).toMatch(/\/debian$/);
  expect(await debianMirror('/does/not/exist')).toMatch(/\/debian$/);
});

/** A member of an `ar` archive, whose contents begin at even offsets. */
const member = (name: string, content: string): string =>
  `${name.padEnd(16)}${'0'.padEnd(32)}${String(content.length).padEnd(10)}\`\n${content}${content.length % 2 ? '\n' : ''}`;

test('the files of a package are found behind members of odd sizes', () => {
  const archive = `!<arch>\n${member('debian-binary', '2.0')}${member('control.tar.xz', 'abc')}${member('data.tar.xz', 'files')}`;
  expect(dataOf(Buffer.from(archive))).toEqual({ name: 'data.tar.xz', content: Buffer.from('files') });
});

test('an archive that is cut off is refused', () => {
  const archive = `!<arch>\n${member('debian-binary', '2.0')}`;
  expect(() => dataOf(Buffer.from(archive))).toThrow('no member data.tar');
});
