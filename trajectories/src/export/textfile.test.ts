import { readdir, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync, inflateRawSync } from 'node:zlib';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, test, vi } from 'vitest';
import { openTextFile } from './textfile.ts';

/** More than two blocks, of which each compresses to several pieces. */
const LINES = Array.from({ length: 60_000 }, (_, at) => `{"line":${at},"root":"${Math.sqrt(at)}"}\n`);

test('a .gz file is one gzip member, for readers that stop after the first', async () => {
  const folder = temporaryFolder('textfile');
  const path = join(folder, 'rows.jsonl.gz');
  {
    await using file = await openTextFile(path);
    for (const line of LINES) await file.write(line);
    await file.finish();
  }
  const bytes = await readFile(path);
  // The header of a gzip member without a name has ten bytes; check and size have eight at its end.
  const { buffer, engine } = inflateRawSync(bytes.subarray(10), { info: true }) as unknown as {
    buffer: Buffer;
    engine: { bytesWritten: number };
  };
  expect(buffer.toString()).toBe(LINES.join(''));
  expect(engine.bytesWritten).toBe(bytes.length - 18);
  expect(gunzipSync(bytes).equals(buffer)).toBe(true);
  expect(await readdir(folder)).toEqual(['rows.jsonl.gz']);
});

test.each(['rows.jsonl', 'rows.jsonl.gz'])('%s on a full disk rejects as unwritable', async (name) => {
  const folder = temporaryFolder('textfile');
  await symlink('/dev/full', join(folder, `.${name}.part`));
  await using file = await openTextFile(join(folder, name));
  const writing = async (): Promise<void> => {
    for (const line of LINES) await file.write(line);
    await file.finish();
  };
  await expect(writing()).rejects.toMatchObject({ code: 'output_unwritable' });
});

test('a failed write to standard output rejects as unwritable', async () => {
  const full = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
  using _write = vi.spyOn(process.stdout, 'write').mockImplementation((_text, ended) => {
    (ended as unknown as (error: Error) => void)(full);
    return false;
  });
  await using file = await openTextFile('-');
  await expect(file.write('text')).rejects.toMatchObject({ code: 'output_unwritable' });
});
