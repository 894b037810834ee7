import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { EMPTY_CONFIG } from '../../src/images/config.ts';
import { layerOf } from '../../src/images/layer.fixture.ts';
import { unpackInThread } from '../../src/sandbox/rootfs/unpack.ts';

const FILES = 30;
const FILE_BYTES = 100_000;
/** Side by side, so that writing is slower than sending. */
const AT_ONCE = 2;

test('an export that the engine has sent before it is written is whole', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-export-'));
  const content = 'x'.repeat(FILE_BYTES);
  const body = await layerOf(Array.from({ length: FILES }, (_, i) => ({ name: `file${i}`, content })));
  const engine = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/x-tar', connection: 'close' }).end(body);
  });
  try {
    const socketPath = join(folder, 'engine.sock');
    engine.listen(socketPath);
    await once(engine, 'listening');
    const known = { digest: 'sha256:1', config: EMPTY_CONFIG };
    const source = { kind: 'export', socketPath, container: 'one', known } as const;
    const unpacked = await Promise.all(
      Array.from({ length: AT_ONCE }, (_, i) => {
        const task = { source, partial: join(folder, String(i)), owners: false };
        return unpackInThread(task, new AbortController().signal);
      }),
    );
    expect(unpacked).toEqual(Array(AT_ONCE).fill({ ...known, bytes: FILES * FILE_BYTES }));
  } finally {
    engine.close();
    await rm(folder, { recursive: true, force: true });
  }
});
