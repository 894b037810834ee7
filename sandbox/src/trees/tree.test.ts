/** Tests that an archive of a hostile sandbox yields only files, folders and links of its own folder, within the limits. */
import { buffer } from 'node:stream/consumers';
import tar, { type Header } from 'tar-stream';
import { expect, test } from 'vitest';
import { readTree } from './tree.ts';

type Part = Partial<Header> & { name: string; content?: string };
const ROOT: Part = { name: './', type: 'directory' };
const LIMITS = { bytes: 100, entries: 5 };

async function read(...parts: Part[]) {
  const pack = tar.pack();
  for (const { content, ...header } of parts) pack.entry(header as Header, content ?? '');
  pack.finalize();
  const tree = await readTree(await buffer(pack), LIMITS);
  const entries = tree?.entries.map((entry) =>
    entry.content ? { ...entry, content: Buffer.from(entry.content).toString() } : entry,
  );
  return { ...tree, entries };
}

test('a folder has its files, empty folders, and links to its own files', async () => {
  const tree = await read(
    ROOT,
    { name: './a/', type: 'directory', mode: 0o1750 },
    { name: './a/b', content: 'text', mode: 0o6777 },
    { name: './a/c', type: 'symlink', linkname: '../d' },
    { name: './d', type: 'link', linkname: './a/b' },
  );
  expect(tree).toEqual({
    folder: true,
    refused: [],
    entries: [
      { path: 'a', mode: 0o750 },
      { path: 'a/b', content: 'text', mode: 0o777 },
      { path: 'a/c', link: '../d' },
      { path: 'd', content: 'text', mode: 0o777 },
    ],
  });
});

test('a single file has no name', async () => {
  expect(await read({ name: './x', content: 'one', mode: 0o022 })).toEqual({
    ...{ folder: false, refused: [], entries: [{ path: '', content: 'one', mode: 0o022 }] },
  });
  expect((await read({ name: './x', type: 'symlink', linkname: '/etc/passwd' })).entries).toEqual([]);
  expect(await readTree(new Uint8Array(), LIMITS)).toBeNull();
});

test.each<[string, Part[], RegExp]>([
  ['a path with ..', [{ name: './../tests/test.sh', content: 'x' }], /leads out/],
  ['an absolute path', [{ name: '/tests/test.sh', content: 'x' }], /leads out/],
  ['a link to an absolute path', [{ name: './l', type: 'symlink', linkname: '/tests' }], /link to \/tests/],
  ['a link out of the folder', [{ name: './l', type: 'symlink', linkname: '../x' }], /link to/],
  ['a link through another link', [{ name: './l', type: 'symlink', linkname: 'a/../../x' }], /link to/],
  ['a hard link to another place', [{ name: './l', type: 'link', linkname: '/etc/passwd' }], /is a link/],
  ['a path of more than 1000 bytes', [{ name: `./${'x/'.repeat(501)}` }], /path of more than 1000 bytes/],
  ['a name of more than 255 bytes', [{ name: `./${'é'.repeat(128)}` }], /name of more than 255 bytes/],
  ['a name that is no UTF-8', [{ name: './a\ufffd' }], /no UTF-8/],
  ['a link to no UTF-8', [{ name: './l', type: 'symlink', linkname: '\ufffd' }], /no UTF-8/],
  ['a pipe', [{ name: './p', type: 'fifo' }], /is a fifo/],
  ['a device', [{ name: './p', type: 'character-device' }], /is a character-device/],
  ['a file without its folder', [{ name: './deep/file', content: 'x' }], /below a link or a file/],
])('%s is left out and named', async (_, parts, why) => {
  const tree = await read(ROOT, ...parts);
  expect(tree.entries).toEqual([]);
  expect(tree.refused).toEqual([expect.stringMatching(why)]);
});

test.each<[string, Part[]]>([
  [
    'below a link',
    [
      { name: './l', type: 'symlink', linkname: '.' },
      { name: './l/x', content: 'x' },
    ],
  ],
  [
    'in place of a link',
    [
      { name: './l', type: 'symlink', linkname: 'x' },
      { name: './l', content: 'x' },
    ],
  ],
  [
    'in place of a file',
    [
      { name: './l', content: 'x' },
      { name: './l', type: 'directory' },
    ],
  ],
])('an entry %s is left out', async (_, parts) => {
  const tree = await read(ROOT, ...parts);
  expect([tree.entries?.length, tree.refused?.length]).toEqual([1, 1]);
});

test.each<[string, Part[]]>([
  ['bytes', [{ name: './x', content: 'x'.repeat(101) }]],
  ['entries', Array.from({ length: 6 }, (_, at) => ({ name: `./${at}/`, type: 'directory' as const }))],
  ['entries that are left out', Array.from({ length: 6 }, () => ({ name: './p', type: 'fifo' as const }))],
  [
    'bytes by hard links',
    [
      { name: './x', content: 'x'.repeat(60) },
      { name: './y', type: 'link', linkname: './x' },
    ],
  ],
])('too many %s are refused', async (_, parts) => {
  await expect(read(ROOT, ...parts)).rejects.toMatchObject({ code: 'file_too_large' });
});

test('the event loop continues during a long archive', async () => {
  const pack = tar.pack();
  for (let at = 0; at < 2_000; at += 1) pack.entry({ name: './', type: 'directory' });
  pack.finalize();
  const archive = await buffer(pack);
  let turns = 0;
  const count = setInterval(() => (turns += 1), 0);
  await readTree(archive, { bytes: 1, entries: 2_000 }).finally(() => clearInterval(count));
  expect(turns).toBeGreaterThan(2);
});
