import { appendFile, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, test } from 'vitest';
import type { ExportWriter } from './format.ts';
import type { ExportedRollout } from './rollout.ts';
import { openShards, type ShardOptions } from './shards.ts';

async function prepare() {
  const folder = temporaryFolder('shards');
  const path = join(folder, 'out');
  const open = (fingerprint = 'a') =>
    openShards({ path, form: 'f', lines: 'main', samples: 1, fingerprint }, TEXTS);
  return { folder, path, open };
}

/** A shard ends after two bytes; each rollout is a group of its own. */
const TEXTS: ShardOptions<string> = {
  ...{ ending: 'bin', groupBytes: 1, shardBytes: 2, facts: {} },
  rowsOf: ({ patch }) => ({ rows: [patch ?? ''], bytes: patch?.length ?? 0 }),
  create: (file) => ({ add: (rows) => appendFile(file, rows.join('')), end: () => Promise.resolve() }),
};

const write = (shards: ExportWriter, rollout_id: string, patch: string): Promise<void> =>
  shards.write({ line: { rollout_id }, patch } as ExportedRollout);

test('an interrupted export continues, also with an incomplete journal', async () => {
  const { folder, path, open } = await prepare();
  {
    await using shards = await open();
    await write(shards, 'r.i.0', 'ab');
    await write(shards, 'r.i.1', 'ab');
    // The third rollout does not fill its shard.
    await write(shards, 'r.i.2', 'a');
  }
  expect(await readdir(folder)).toEqual(['.out.part']);
  const journal = join(folder, '.out.part', 'shards.jsonl');
  await writeFile(journal, (await readFile(journal, 'utf8')).slice(0, -5));
  await using shards = await open();
  expect([...(shards.written ?? [])]).toEqual(['r.i.0']);
  await write(shards, 'r.i.1', 'ab');
  await shards.finish();
  expect(await readdir(folder)).toEqual(['out']);
  expect((await readdir(path)).sort()).toEqual(['_manifest.json', 'shard-00000.bin', 'shard-00001.bin']);
  const manifest = JSON.parse(await readFile(join(path, '_manifest.json'), 'utf8'));
  expect(manifest.shards).toEqual([
    { file: 'shard-00000.bin', rows: 1, rollouts: 1 },
    { file: 'shard-00001.bin', rows: 1, rollouts: 1 },
  ]);
});

test('an export of other rollouts starts again; without a shard no file remains', async () => {
  const { folder, open } = await prepare();
  {
    await using shards = await open();
    await write(shards, 'r.i.0', 'ab');
  }
  {
    await using shards = await open('b');
    expect(shards.written?.size).toBe(0);
    await write(shards, 'r.i.2', 'a');
  }
  expect(await readdir(folder)).toEqual([]);
});
