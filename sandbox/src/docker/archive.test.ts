/** Archives that hostile code in a sandbox could make an engine produce. */
import { Readable } from 'node:stream';
import tar, { type Header } from 'tar-stream';
import { expect, test } from 'vitest';
import { readSingleFile } from './archive.ts';

function archive(...entries: (Partial<Header> & { name: string; content?: string })[]): Readable {
  const pack = tar.pack();
  for (const { content, ...header } of entries) pack.entry(header as Header, content ?? '');
  pack.finalize();
  return pack as unknown as Readable;
}

test('a regular file is read completely under any name', async () => {
  for (const name of ['log', '../../etc/passwd', '/etc/passwd']) {
    const read = await readSingleFile(archive({ name, content: 'inside' }), '/testbed/log', 100);
    expect(read?.toString()).toBe('inside');
  }
});

test('links, folders and devices are no files, even if a file follows', async () => {
  const after = { name: 'log', content: 'second' };
  for (const header of [
    { name: 'log', type: 'symlink', linkname: '/etc/passwd' },
    { name: 'log', type: 'link', linkname: '/etc/passwd' },
    { name: 'log', type: 'directory' },
    { name: 'log', type: 'character-device' },
    { name: 'log', type: 'fifo' },
  ] as const) {
    expect(await readSingleFile(archive(header, after), '/testbed/log', 100), header.type).toBeNull();
  }
  expect(await readSingleFile(archive(), '/testbed/log', 100)).toBeNull();
});

test('a size above the limit is refused by the header, before the content', async () => {
  const pack = tar.pack();
  pack.entry({ name: 'log', size: 1e12 });
  // The content never comes, so only the header has the size.
  const reading = readSingleFile(pack as unknown as Readable, '/testbed/log', 1000);
  await expect(reading).rejects.toMatchObject({ code: 'file_too_large' });
});

test('an incomplete archive throws', async () => {
  const whole = await Array.fromAsync(archive({ name: 'log', content: 'x'.repeat(5000) }));
  const cut = Buffer.concat(whole as Buffer[]).subarray(0, 2000);
  await expect(readSingleFile(Readable.from([cut]), '/testbed/log', 10_000)).rejects.toThrow();
});
