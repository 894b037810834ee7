import { readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { beforeEach, describe, expect, it } from 'vitest';
import { type LayerEntry, layerOf } from '../../test/images/layer.ts';
import { TreeWriter } from './tree.ts';

let folder: string;
let root: string;
beforeEach(() => {
  folder = temporaryFolder('tree');
  root = join(folder, 'tree');
});

async function unpack(...layers: LayerEntry[][]): Promise<void> {
  const writer = new TreeWriter(root, false);
  for (const layer of layers) await writer.layer(Readable.from([await layerOf(layer)]));
}
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

it('writes files with modes and times, folders and links', async () => {
  const mtime = new Date('2020-02-02T02:02:02Z');
  await unpack([
    { name: 'usr/bin/', type: 'directory', mode: 0o755 },
    { name: 'usr/bin/tool', content: '#!/bin/sh\n', mode: 0o755, mtime },
    { name: 'usr/bin/same', type: 'link', linkname: 'usr/bin/tool' },
    { name: 'bin', type: 'symlink', linkname: 'usr/bin' },
    { name: 'deep/without/parents', content: 'x' },
    { name: 'dev/null', type: 'character-device' },
  ]);
  const tool = statSync(join(root, 'usr/bin/tool'));
  expect(tool.mode & 0o7777).toBe(0o755);
  expect(tool.mtime).toEqual(mtime);
  expect(statSync(join(root, 'usr/bin/same')).ino).toBe(tool.ino);
  expect(readlinkSync(join(root, 'bin'))).toBe('usr/bin');
  expect(read('deep/without/parents')).toBe('x');
  expect(readdirSync(join(root, 'dev'))).toEqual([]);
});

describe('layers', () => {
  it('replaces files, folders and links by later entries', async () => {
    await unpack(
      [
        { name: 'a/b', content: 'old' },
        { name: 'link', type: 'symlink', linkname: 'a' },
        { name: 'file', content: 'old' },
      ],
      [
        { name: 'a', content: 'now a file' },
        { name: 'link', content: 'no link any more' },
        { name: 'file/inner', content: 'now a folder' },
      ],
    );
    expect([read('a'), read('link'), read('file/inner')]).toEqual([
      'now a file',
      'no link any more',
      'now a folder',
    ]);
  });

  it('whiteouts and opaque folders remove entries of lower layers only', async () => {
    await unpack(
      [
        { name: 'gone', content: '1' },
        { name: 'kept', content: '1' },
        { name: 'opaque/old', content: '1' },
        { name: 'opaque/sub/old', content: '1' },
      ],
      [
        { name: 'opaque/sub/new', content: '2' },
        { name: 'opaque/new', content: '2' },
        { name: 'opaque/.wh..wh..opq', content: '' },
        { name: '.wh.gone', content: '' },
        { name: 'kept', content: '2' },
        { name: '.wh.kept', content: '' },
      ],
    );
    expect(readdirSync(root).sort()).toEqual(['kept', 'opaque']);
    expect(read('kept')).toBe('2');
    expect(readdirSync(join(root, 'opaque'), { recursive: true }).sort()).toEqual(['new', 'sub', 'sub/new']);
  });
});

describe('hostile layers stay in the tree', () => {
  it('with absolute links, links upwards and names upwards', async () => {
    writeFileSync(join(folder, 'outside'), 'untouched');
    await unpack(
      [
        { name: 'abs', type: 'symlink', linkname: folder },
        { name: 'up', type: 'symlink', linkname: '../../../..' },
        { name: 'file', type: 'symlink', linkname: join(folder, 'outside') },
      ],
      [
        { name: 'abs/outside', content: 'written' },
        { name: 'up/etc/x', content: 'written' },
        { name: '../../outside', content: 'written' },
        { name: 'file', content: 'written' },
        { name: 'stolen', type: 'link', linkname: '../outside' },
        { name: 'abs/.wh.outside', content: '' },
      ],
    ).catch((error: NodeJS.ErrnoException) => expect(error.code).toBe('ENOENT'));
    expect(readFileSync(join(folder, 'outside'), 'utf8')).toBe('untouched');
    expect(readdirSync(folder).sort()).toEqual(['outside', 'tree']);
    expect(read(join(folder, 'outside'))).toBe('written');
    expect(read('etc/x')).toBe('written');
    expect(read('file')).toBe('written');
  });

  it('throw for a circle of links', async () => {
    const circle: LayerEntry[] = [
      { name: 'a', type: 'symlink', linkname: 'b' },
      { name: 'b', type: 'symlink', linkname: 'a' },
      { name: 'a/x', content: '' },
    ];
    await expect(unpack(circle)).rejects.toThrow('symlinks');
  });
});

it('a layer whose stream ends early without an error throws', async () => {
  const bytes = await layerOf([{ name: 'file', content: 'x'.repeat(100_000) }]);
  const source = new Readable({ read: () => undefined });
  source.push(bytes.subarray(0, 50_000));
  const written = new TreeWriter(root, false).layer(source);
  source.destroy();
  await expect(written).rejects.toThrow();
});
