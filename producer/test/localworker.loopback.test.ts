/** Tests the number of restarts of a local worker. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { testFolder } from '@swefarm/runs/test/farm.ts';
import { expect, test } from 'vitest';
import { type LocalWorkerOptions, startLocalWorker } from '../src/local/worker.ts';

/** Runs a worker that writes one line and ends with `code`. `results`: number of the run's results after each start. */
async function startsOf(code: number, results: readonly number[]) {
  const log = join(await testFolder(), 'worker.log');
  let read = 0;
  const options: LocalWorkerOptions = {
    command: ['/bin/sh', '-c', `echo "arguments: $*"; exit ${code}`, 'worker'],
    args: ['run'],
    firstArgs: ['--engine-patience-seconds', '3'],
    // startLocalWorker reads the number before and after each start.
    results: () => results[Math.min(Math.floor(read++ / 2), results.length - 1)] ?? 0,
    environment: process.env,
    logFile: log,
    onNote: () => undefined,
    pauseMs: () => 0,
  };
  await using worker = startLocalWorker(options);
  const reason = await worker.ended;
  return { reason: reason?.message ?? null, starts: (await readFile(log, 'utf8')).trim().split('\n') };
}

test('a worker that dies without bringing a result is started six times', async () => {
  const { reason, starts } = await startsOf(1, [0]);
  expect(reason).toMatch(/ended with exit code 1 after 5 restarts without a result/);
  expect(starts).toEqual([
    'arguments: run --engine-patience-seconds 3',
    ...Array.from({ length: 5 }, () => 'arguments: run'),
  ]);
});

test('a worker that cannot start is not started again', async () => {
  const { reason, starts } = await startsOf(12, [0]);
  expect(reason).toMatch(/ended with exit code 12: /);
  expect(starts).toHaveLength(1);
});
