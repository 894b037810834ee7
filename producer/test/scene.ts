/** Makes datasets in folders, farms for commands, and servers. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { lines, row } from '@swefarm/datasets/test/rows.ts';
import { redisUrl, testFolder } from '@swefarm/runs/test/farm.ts';
import { newId, type ProducerConfig } from '@swefarm/shared';
import { until } from '@swefarm/testkit';
import { onTestFinished } from 'vitest';
import { fakeWorker, linesOf } from './cli.ts';

export const flaskId = (at: number): string => `pallets__flask-${at}`;

/** Makes a folder with `rows.jsonl`, which has `count` rows. `at` returns a path in the folder. */
export async function flaskRows(count: number) {
  const folder = await testFolder();
  const at = (name: string): string => join(folder, name);
  const ids = Array.from({ length: count }, (_, index) => flaskId(index));
  const paths = { dataset: at('rows.jsonl'), output: at('out.jsonl'), state: at('state') };
  await writeFile(paths.dataset, lines(...ids.map((instance_id) => row({ instance_id }))));
  return { folder, at, ids, ...paths };
}

/** Returns options that name a new farm in the Redis of the tests. */
export const farmOptions = (prefix = `t${newId()}`): string[] => [
  ...['--redis-url', redisUrl(), '--redis-prefix', prefix],
];

/** Returns environment variables that name the farm of a configuration in the Redis of the tests. */
export const farmVariables = ({ redis_prefix }: ProducerConfig) => ({
  ...{ SWEFARM_REDIS_URL: redisUrl(), SWEFARM_REDIS_PREFIX: redis_prefix },
});

/** Starts a fake worker that runs until the test ends. Returns options that name its farm. */
export function farmWithWorker(mode: string): string[] {
  const farm = farmOptions();
  const [program = '', ...fake] = fakeWorker(mode).split(' ');
  const worker = spawn(program, [...fake, 'run', ...farm], { stdio: 'ignore' });
  onTestFinished(() => void worker.kill('SIGTERM'));
  return farm;
}

/** Waits until the output has two lines. */
export const twoLines = (output: string): Promise<unknown> =>
  until(async () => existsSync(output) && (await linesOf(output)).length >= 2);

/** Starts a server on the loopback that runs until the test ends. Returns its address. */
export async function listening(handle: RequestListener): Promise<string> {
  const server = createServer(handle).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise((done) => server.once('listening', done));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
