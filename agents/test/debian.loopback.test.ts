import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { unpackDebian } from '../src/install/debian.ts';
import { temporaryFolder } from '../src/install/folder.fixture.ts';
import { runProgram } from '../src/install/run.ts';

const signal = new AbortController().signal;
const files = new Map<string, Buffer>();
/** The request for slow.deb, which is never answered; lost.deb is refused after it has come. */
const slow = Promise.withResolvers<ServerResponse>();
const server = createServer(async (request, response) => {
  if (request.url === '/slow.deb') return slow.resolve(response);
  if (request.url === '/lost.deb') await slow.promise;
  const found = files.get(request.url ?? '');
  response.writeHead(found ? 200 : 404).end(found);
});
let root = '';
let wanted = { name: 'greeting', version: '1.0', file: 'pool/greeting_1.0.deb', bytes: 0, sha256: '' };

/** A package as dpkg makes it, whose only file is usr/greeting. */
async function makePackage(): Promise<Buffer> {
  const folder = temporaryFolder();
  const script =
    'mkdir usr none; echo hello >usr/greeting; tar -cJf data.tar.xz usr; tar -cJf control.tar.xz -C none .; echo 2.0 >debian-binary';
  await runProgram('sh', ['-c', script], { signal, cwd: folder });
  const parts = [Buffer.from('!<arch>\n')];
  for (const name of ['debian-binary', 'control.tar.xz', 'data.tar.xz']) {
    const content = await readFile(join(folder, name));
    const numbers = '0           0     0     100644  ';
    parts.push(Buffer.from(`${name.padEnd(16)}${numbers}${String(content.length).padEnd(10)}\`\n`), content);
    if (content.length % 2) parts.push(Buffer.from('\n'));
  }
  return Buffer.concat(parts);
}

beforeAll(async () => {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  root = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const bytes = await makePackage();
  wanted = { ...wanted, bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') };
  files.set('/archive/pool/greeting_1.0.deb', bytes);
  files.set('/changed/pool/greeting_1.0.deb', Buffer.from('other bytes'));
});
afterAll(() => server.close());

test('a package that the mirror lost or changed comes from the archive', async () => {
  for (const mirror of ['/gone', '/changed']) {
    const folder = temporaryFolder();
    await unpackDebian([wanted], folder, [root + mirror, `${root}/archive`], signal);
    expect(await readFile(join(folder, 'usr/greeting'), 'utf8')).toBe('hello\n');
  }
});

test('a package with another hash everywhere is refused with its sources', async () => {
  const unpacking = unpackDebian([wanted], temporaryFolder(), [`${root}/gone`, `${root}/changed`], signal);
  await expect(unpacking).rejects.toThrow(
    /greeting 1\.0 .*\/gone\/pool\S+: HTTP 404; .*\/changed\/pool\S+: the hash differs/,
  );
});

test('after a failed package nothing is written any more', async () => {
  const folder = temporaryFolder();
  const both = ['lost', 'slow'].map((name) => ({ ...wanted, name, file: `${name}.deb` }));
  const unpacking = unpackDebian(both, folder, [root], signal);
  await expect(unpacking).rejects.toThrow(/cannot fetch the Debian package lost 1\.0/);
  await expect.poll(async () => (await slow.promise).destroyed).toBe(true);
  expect(await readdir(folder)).toEqual([]);
});
