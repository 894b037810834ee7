/** Makes datasets in folders, and farms for commands. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { lines, row } from '@swefarm/datasets/test/rows.ts';
import { redisUrl, testFolder } from '@swefarm/runs/test/farm.ts';
import { newId, type ProducerConfig } from '@swefarm/shared';
import { until, words } from '@swefarm/testkit';
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
export const farmOptions = (prefix = `t${newId()}`): string[] =>
  words`--redis-url ${redisUrl()} --redis-prefix ${prefix}`;

/** Returns environment variables that name the farm of a configuration in the Redis of the tests. */
export const farmVariables = ({ redis_prefix }: ProducerConfig) => ({
  SWEFARM_REDIS_URL: redisUrl(),
  SWEFARM_REDIS_PREFIX: redis_prefix,
});

/** Starts a fake worker of the farm that the options name. The worker runs until the test ends. */
export function startFakeWorker(mode: string, farm: readonly string[]): void {
  const [program = '', ...fake] = fakeWorker(mode).split(' ');
  const worker = spawn(program, [...fake, 'run', ...farm], { stdio: 'ignore' });
  onTestFinished(() => void worker.kill('SIGTERM'));
}

/** Starts a fake worker as {@link startFakeWorker} does. Returns options that name its farm. */
export function farmWithWorker(mode: string): string[] {
  const farm = farmOptions();
  startFakeWorker(mode, farm);
  return farm;
}

/** Waits until the output has two lines. */
export const twoLines = (output: string): Promise<unknown> =>
  until(async () => existsSync(output) && (await linesOf(output)).length >= 2);
