import { chmod, chown, mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { beforeAll, expect, test } from 'vitest';
import { launchRedis, openFarm } from '../src/index.ts';
import { fetchedServer } from '../src/redis/server.ts';
import { testConfig, testInstance, testRun } from './farm.ts';

let root = '';
beforeAll(async () => {
  root = temporaryFolder('launch');
});

test('data survives the next launch in the same folder', async () => {
  const dir = join(root, 'again');
  const run = testRun();
  for (const launch of [1, 2]) {
    await using redis = await launchRedis({ dir, binDir: root });
    await using farm = await openFarm(
      testConfig({ redis_url: redis.url.reveal(), redis_prefix: 'p' }),
      'producer',
    );
    if (launch === 1) await farm.runs.create(run, [testInstance()]);
    else expect((await farm.runs.list()).map(({ run_id }) => run_id)).toEqual([run.run_id]);
  }
  expect((await stat(join(dir, 'redis.conf'))).mode & 0o077).toBe(0);
});

test('a folder of a live process is refused; the server of a dead one is taken over', async () => {
  const dir = join(root, 'busy');
  await using redis = await launchRedis({ dir, binDir: root });
  const mark = { pid: redis.pid, port: redis.port, password: new URL(redis.url.reveal()).password };
  await writeFile(join(dir, 'server.json'), JSON.stringify({ ...mark, owner: 1 }));
  await expect(launchRedis({ dir, binDir: root })).rejects.toMatchObject({ code: 'redis_dir_in_use' });
  await writeFile(join(dir, 'server.json'), JSON.stringify({ ...mark, owner: 2 ** 22 - 3 }));
  await using taken = await launchRedis({ dir, binDir: root });
  expect(taken.pid).toBe(redis.pid);
});

test("another user's folder is refused", async ({ skip }) => {
  skip(process.getuid?.() !== 0, 'only root can make what belongs to somebody else');
  const [dir, binDir] = [join(root, 'strange'), join(root, 'strange-bin')];
  await using redis = await launchRedis({ dir: join(root, 'own'), binDir: root });
  const mark = { pid: redis.pid, port: redis.port, password: new URL(redis.url.reveal()).password };
  for (const path of [dir, binDir]) {
    await mkdir(path);
    await chown(path, 54_321, 54_321);
  }
  await writeFile(join(dir, 'server.json'), JSON.stringify({ ...mark, owner: 2 ** 22 - 3 }));
  await expect(launchRedis({ dir, binDir: root })).rejects.toMatchObject({ code: 'folder_not_ours' });
  const program = join(binDir, 'valkey-server');
  await writeFile(program, '#!/bin/sh\n');
  await chmod(program, 0o755);
  await chown(program, 54_321, 54_321);
  await expect(fetchedServer(binDir)).rejects.toMatchObject({ code: 'folder_not_ours' });
});

test('the error of a server that cannot start has the reason', async () => {
  const launching = launchRedis({ dir: join(root, 'bad'), binDir: root, settings: ['no-such-setting 1'] });
  await expect(launching).rejects.toMatchObject({ code: 'redis_launch' });
});
