import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, onTestFinished, test, vi } from 'vitest';
import { folderSize } from './diskuse.ts';
import { readNamespace } from './processes.ts';
import { Watchdog, type WatchedSandbox } from './watchdog.ts';

const PATIENCE = { timeout: 100_000, interval: 50 };

async function folder(files: number): Promise<string> {
  const made = temporaryFolder('watchdog');
  await mkdir(join(made, 'upper'));
  for (let at = 0; at < files; at++) await writeFile(join(made, 'upper', `f${at}`), '');
  return made;
}

const watched = (changes: Partial<WatchedSandbox>): WatchedSandbox => ({
  ...{ namespace: 'pid:[0]', init: 0, memoryBytes: null, pids: null, diskBytes: null, folder: '/nowhere' },
  onMemoryKill: () => undefined,
  killAll: async () => undefined,
  end: () => undefined,
  ...changes,
});

/** Processes in their own namespace, like a sandbox's. */
async function swarm(size: number): Promise<{ init: number; namespace: string }> {
  const user = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'];
  const line = `for i in $(seq ${size}); do sleep 600 & done; echo up; wait`;
  const args = [...user, '--pid', '--fork', '--kill-child', 'sh', '-c', line];
  const child = spawn('unshare', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  const children = await readFile(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8');
  const init = Number(children.trim().split(' ')[0]);
  return { init, namespace: (await readNamespace(init, 'pid')) ?? '' };
}

test('empty files count, and a folder that takes too long to measure is infinite', async () => {
  const made = await folder(500);
  expect(await folderSize(made)).toBeGreaterThanOrEqual(500 * 4096);
  expect(await folderSize('/usr', 1)).toBe(Number.POSITIVE_INFINITY);
  expect(await folderSize(join(made, 'gone'))).toBeNull();
});

test('a sandbox of many empty files is ended for its disk limit', async () => {
  using dog = new Watchdog({ diskEveryMs: 100 });
  const [small, large] = [vi.fn(), vi.fn()];
  dog.watch(watched({ folder: await folder(10), diskBytes: 1_000_000, end: small }));
  dog.watch(watched({ folder: await folder(400), diskBytes: 1_000_000, end: large }));
  await vi.waitFor(() => expect(large).toHaveBeenCalledWith('disk'), PATIENCE);
  expect(small).not.toHaveBeenCalled();
});

test('an endless measurement delays neither the watch of processes nor other disks', async () => {
  const slow = await folder(0);
  using dog = new Watchdog({
    diskEveryMs: 100,
    measure: (path) => (path === slow ? sleep(600_000, 0, { ref: false }) : Promise.resolve(2)),
  });
  const [killAll, end] = [vi.fn(async () => undefined), vi.fn()];
  dog.watch(watched({ folder: slow, diskBytes: 1 }));
  await sleep(300);
  dog.watch(watched({ ...(await swarm(20)), pids: 4, killAll }));
  dog.watch(watched({ folder: '/else', diskBytes: 1, end }));
  await vi.waitFor(() => {
    expect(end).toHaveBeenCalledWith('disk');
    expect(killAll).toHaveBeenCalled();
  }, PATIENCE);
});
