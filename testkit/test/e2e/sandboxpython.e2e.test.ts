/** Tests the Python package `swefarm` against a farm whose gateway and worker are killed in the middle of a command. */
import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { freePort } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { gatewayUrl } from '../../src/launchers/commands.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import { openScene } from './scene.ts';
import { EXAMPLE_ID } from './scripts.ts';

const PACKAGE = join(import.meta.dirname, '../../../producer/python');
const TOKEN = 'a-token-of-this-test';

test('a loop in Python keeps its sandbox through a killed gateway, and learns of a lost one', async () => {
  await using stack = new AsyncDisposableStack();
  const redis = stack.use(await startRedis());
  const scene = openScene({
    SWEFARM_REDIS_URL: redis.url,
    SWEFARM_RUNTIME: 'rootfs',
    SWEFARM_CONCURRENCY: '2',
    SWEFARM_GATEWAY_TOKEN: TOKEN,
  });
  const port = await freePort();
  const serve = () => stack.use(scene.start`serve --port ${port}`);
  const first = serve();
  const url = await gatewayUrl(first);
  const names = ['one', 'two'].map((name) => `${name}py${process.pid}`) as [string, string];
  const one = await scene.worker`--worker-id ${names[0]}`;
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'rootfs', out: scene.folder });
  const row = join(scene.folder, 'row.json');
  await writeFile(row, JSON.stringify(built.rows[0]));

  const child = spawn('python3', [join(import.meta.dirname, 'sandbox.py'), row], {
    env: {
      PATH: process.env.PATH,
      PYTHONPATH: PACKAGE,
      PYTHONDONTWRITEBYTECODE: '1',
      SWEFARM_GATEWAY_URL: url,
      SWEFARM_GATEWAY_TOKEN: TOKEN,
    },
  });
  stack.defer(() => void child.kill('SIGKILL'));
  const stderr = text(child.stderr);
  const faults: Record<string, () => Promise<void>> = {
    async gateway() {
      first.kill('SIGKILL');
      await first.exit;
      await gatewayUrl(serve());
    },
    async worker() {
      one.kill('SIGKILL');
      await one.exit;
      await scene.worker`--worker-id ${names[1]}`;
    },
  };
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    await faults[line]?.();
  }
  expect(await stderr).toBe('');
  expect(lines).toEqual(['gateway', 'worker', 'done']);
});
