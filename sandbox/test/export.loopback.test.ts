import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { listening } from '@swefarm/testkit/test/listening.ts';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, onTestFinished, test } from 'vitest';
import { EMPTY_CONFIG } from '../src/images/config.ts';
import { unpackApart } from '../src/rootfs/unpack.ts';
import { layerOf } from './images/layer.ts';

const FILES = 30;
const FILE_BYTES = 100_000;
/** Number of parallel unpackings, which make writing slower than sending. */
const AT_ONCE = 2;

test('an export that is sent faster than it is written is complete', async () => {
  const folder = temporaryFolder('export');
  const content = 'x'.repeat(FILE_BYTES);
  const body = await layerOf(Array.from({ length: FILES }, (_, i) => ({ name: `file${i}`, content })));
  const socketPath = await listening(
    (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/x-tar', connection: 'close' }).end(body);
    },
    join(folder, 'engine.sock'),
  );
  const known = { digest: 'sha256:1', config: EMPTY_CONFIG };
  const source = { kind: 'export', socketPath, container: 'one', known } as const;
  const unpacked = await Promise.all(
    Array.from({ length: AT_ONCE }, (_, i) => unpackApart({ source, partial: join(folder, String(i)) })),
  );
  expect(unpacked).toEqual(Array(AT_ONCE).fill({ ...known, bytes: FILES * FILE_BYTES }));
});

/** Starts an engine that sends one complete file and then nothing; `openAnswer` resolves with the unfinished response. */
async function startStalledEngine() {
  const folder = temporaryFolder('export');
  const body = await layerOf([
    { name: 'file', content: 'x' },
    { name: 'more', content: 'x'.repeat(FILE_BYTES) },
  ]);
  const openAnswer = Promise.withResolvers<ServerResponse>();
  const socketPath = await listening(
    (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/x-tar' }).write(body.subarray(0, 2000));
      openAnswer.resolve(response);
    },
    join(folder, 'engine.sock'),
  );
  const source = {
    kind: 'export',
    socketPath,
    container: 'one',
    known: { digest: 'd', config: EMPTY_CONFIG },
  } as const;
  const task = { source, partial: join(folder, 'partial') };
  return { folder, openAnswer: openAnswer.promise, task };
}

test('an aborted unpacking has ended when it throws', async () => {
  const { openAnswer, task } = await startStalledEngine();
  const stop = new AbortController();
  const unpacking = unpackApart(task, stop.signal);
  const answer = await openAnswer;
  const closed = once(answer, 'close');
  await expect
    .poll(() => readdir(join(task.partial, 'tree')).catch(() => []), { timeout: 60_000 })
    .toContain('file');
  stop.abort(new Error('enough'));
  await expect(unpacking).rejects.toThrow('enough');
  await closed;
}, 120_000);

test('an unpacking ends with a killed worker', async () => {
  const { folder, openAnswer, task } = await startStalledEngine();
  const program = join(folder, 'worker.mjs');
  const source = new URL('../src/rootfs/unpack.ts', import.meta.url).href;
  await writeFile(
    program,
    `const { unpackApart } = await import(${JSON.stringify(source)});
await unpackApart(${JSON.stringify(task)});`,
  );
  const worker = spawn(process.execPath, [program], { stdio: 'inherit' });
  onTestFinished(() => void worker.kill('SIGKILL'));
  const closed = once(await openAnswer, 'close');
  worker.kill('SIGKILL');
  await closed;
}, 120_000);
