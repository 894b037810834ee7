/** Tests that one artifact with an impossible name does not prevent the export of the others. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CollectedArtifact } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { openFolderTree } from '../../export/foldertree.ts';
import { writeArtifacts } from './artifacts.ts';

const artifact = (destination: string, path: string): CollectedArtifact => ({
  ...{ source: `/${destination}`, destination, exclude: [], type: 'directory', status: 'ok' },
  files: [{ path, content: Int8Array.from([65]), mode: 0 }],
});

test.each([
  ['a name of more than 255 bytes', 'x'.repeat(256)],
  ['a name with NUL', 'a\0b'],
  ['a file as its folder', '../first/x/y'],
])('an artifact with %s fails, and the others are written', async (_, path) => {
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-artifacts-'));
  try {
    await using tree = await openFolderTree(join(folder, 'job'));
    const collected = [artifact('first', 'x'), artifact('bad', path), artifact('last', 'x')];
    await writeArtifacts(tree, 't/artifacts', { content: { collected } as never, patch: null });
    await tree.finish();
    const at = (name: string) => readFile(join(folder, 'job/t/artifacts', name), 'utf8');
    expect(await at('last/x')).toBe('A');
    const statuses = JSON.parse(await at('manifest.json')).map(({ status }: CollectedArtifact) => status);
    expect(statuses).toEqual(['ok', 'failed', 'ok']);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
