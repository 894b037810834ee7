/** Lists what the farm left on this machine and in its Redis at the end. Each list must be empty. */

import { readFile } from 'node:fs/promises';
import { sleep } from '@swefarm/shared';
import { runCommand } from '../src/launchers/commands.ts';
import { endlessKeys, processesOf, scratchOf } from '../test/e2e/leftovers.ts';
import type { ChaosFarm } from './farm.ts';

/** Longest wait in ms: workers remove sandboxes of dead workers once a minute, and after two minutes what an engine did not remove. */
const SWEPT_MS = 240_000;
/** Growth of a Redis after a few hundred rollouts that is accepted: counters, the farm's own lists, and memory that is not freed. */
const MEMORY_SLACK_BYTES = 2 * 1024 ** 2;

const SANDBOXES = /bwrap|init\.sh|sleep 86400/;

/**
 * Waits, while the workers still live, until no sandbox and no job is left. Returns those that are left. The job of a worker that
 * died after its commit remains until another worker finds its lock expired.
 */
export async function sandboxesLeft(farm: ChaosFarm): Promise<string[]> {
  const until = performance.now() + SWEPT_MS;
  for (;;) {
    const left = [
      ...(await farm.engine.containers()).map((id) => `container ${id}`),
      ...(await processesOf(farm.small.path)),
      ...(await processesOf(`${farm.folder}/scratch`)),
    ].filter((what) => what.startsWith('container') || SANDBOXES.test(what));
    const jobs = await farm.view.queue().getJobCounts('active', 'delayed', 'prioritized', 'waiting');
    const open = Object.values(jobs).reduce((sum, count) => sum + count, 0);
    if (open > 0) left.push(`${open} jobs in the queue`);
    if (left.length === 0 || performance.now() > until) return left;
    await sleep(1_000);
  }
}

/** Lists containers, files, mounts, processes and keys without expiry. Call it after the last worker has ended. */
export async function tracesLeft(farm: ChaosFarm): Promise<string[]> {
  const folders = farm.workers.map((_, at) => (at === 1 ? farm.small.path : `${farm.folder}/scratch/w${at}`));
  const files = await Promise.all(
    folders.map(async (folder) => (await scratchOf(folder)).map((name) => `${folder}/${name}`)),
  );
  const processes = [
    ...(await processesOf(farm.small.path)),
    ...(await processesOf(`${farm.folder}/scratch`)),
    ...(await processesOf(farm.engine.socketPath)).filter((line) => !line.includes('dockerd')),
  ];
  return [
    ...(await farm.engine.containers()).map((id) => `container ${id}`),
    ...files.flat().map((path) => `file ${path}`),
    ...(await mountsIn(folders)).map((path) => `mount ${path}`),
    ...processes.map((line) => `process ${line}`),
    ...(await endlessKeys((await farm.redis.server()).url)).map((key) => `key without an expiry:  ${key}`),
  ];
}

/** Returns the mounts below these folders in this process's mount namespace, in which all workers run. */
async function mountsIn(folders: readonly string[]): Promise<string[]> {
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n');
  const paths = lines.map((line) => line.split(' ')[4] ?? '');
  return paths.filter((path) => folders.some((folder) => path.startsWith(`${folder}/`)));
}

/** Returns the bytes of Redis's dataset (`used_memory_dataset`). */
export async function redisMemory(farm: ChaosFarm): Promise<number> {
  const info = await farm.redis.cli('INFO', 'memory');
  return Number(/used_memory_dataset:(\d+)/.exec(info)?.[1]);
}

/** Removes the runs with `swefarm remove`. Returns the keys and files that remain. */
export async function keysLeft(
  farm: ChaosFarm,
  runIds: readonly string[],
  baseBytes: number,
): Promise<string[]> {
  const removed = await runCommand('swefarm', ['remove', ...runIds], { ...farm.env });
  if (removed.code !== 0) return [`runs that cannot be removed: ${removed.stderr}`];
  const keys = (await farm.redis.cli('--scan')).split('\n').filter(Boolean);
  const grown = (await redisMemory(farm)) - baseBytes;
  return [
    // The live keys of runs expire soon by themselves.
    ...keys
      .filter((key) => !key.includes(':live:') && runIds.some((id) => key.includes(id)))
      .map((key) => `key ${key}`),
    ...(grown > MEMORY_SLACK_BYTES
      ? [`${grown} bytes more in Redis than before, in ${keys.length} keys`]
      : []),
  ];
}
