/** Many concurrent entries into sandboxes of the rootfs runtime, and many files at once. */
import { readdirSync } from 'node:fs';
import { poll } from '@swefarm/shared';
import { minimalImage } from '@swefarm/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { rootfsRuntime } from '../src/rootfs/runtime.ts';
import type { Container, Runtime } from '../src/runtime.ts';
import { NEVER, OPTIONS, printed, runtimeFolders, spec } from './subject.ts';

let runtime: Runtime;
beforeAll(async () => {
  runtime = await rootfsRuntime(await runtimeFolders('entering'));
});
afterAll(async () => {
  await runtime[Symbol.asyncDispose]();
});

const start = async (): Promise<Container> =>
  runtime.start(spec(await runtime.ensureImage(`dir:${(await minimalImage()).tree}`, NEVER)), NEVER);

test('more files than one command line can pass are written', async () => {
  await using container = await start();
  const content = Buffer.from('a'.repeat(60 * 1024));
  const files = Array.from({ length: 40 }, (_, at) => ({ path: `/opt/many/${at}`, content }));
  await container.putFiles(files, NEVER);
  expect(await printed(container, 'ls /opt/many | wc -l; cat /opt/many/* | wc -c')).toBe(
    `40\n${40 * content.length}\n`,
  );
});

/** Enters a sandbox. Depending on `at` modulo 3, the process ends by itself, at its time limit, or by an abort. */
async function enterAndEnd(container: Container, at: number): Promise<void> {
  const waits = ['sleep', '600'];
  if (at % 3 === 0) {
    const { exitCode, output } = await container.exec(['sh', '-c', `echo ${at}; exit ${at}`], OPTIONS);
    expect([exitCode, output.toString()]).toEqual([at, `${at}\n`]);
  } else if (at % 3 === 1) {
    expect((await container.exec(waits, { ...OPTIONS, timeoutMs: 5 + at * 3 })).exitCode).toBe(null);
  } else {
    const signal = AbortSignal.timeout(at * 7);
    await expect(container.exec(waits, { ...OPTIONS, signal })).rejects.toThrow();
  }
}

test('killing an entering process leaves other processes unaffected', async () => {
  await using one = await start();
  await using other = await start();
  const files = (): number => readdirSync('/proc/self/fd').length;
  await printed(one, 'true');
  const before = files();
  for (let round = 0; round < 4; round++)
    await Promise.all(Array.from({ length: 20 }, (_, at) => enterAndEnd(at % 2 ? one : other, at)));
  for (const container of [one, other])
    expect(await printed(container, 'cat /proc/[0-9]*/comm | grep -c sleep || true')).toBe('0\n');
  expect(await poll(() => files() <= before, { pauseMs: 50, withinMs: 60_000 })).toBe(true);
});
