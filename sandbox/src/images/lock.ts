/**
 * A lock between processes, also of several nodes with a shared file system: a file that names its owner and is created in one step.
 * Another process takes the lock if the owner died or has not renewed it. The owner may be on another node or in another process
 * namespace.
 */
import { link, rename, stat, unlink, utimes, writeFile } from 'node:fs/promises';
import { bootId, isProcessAlive, newId, ownStartMark, sleep } from '@swefarm/shared';
import { z } from 'zod';
import { readJsonFile } from './jsonfile.ts';

const RENEW_MS = 2_000;
const STALE_MS = 30_000;
const POLL_MS = 100;

const Owner = z.object({ pid: z.number(), pid_started: z.string(), boot_id: z.string().optional() });
const BOOT_ID = bootId();

/** Runs `work` under the lock. Rejects with the signal's reason when aborted while waiting. */
export async function withLock<T>(path: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  const mine = `${path}.${newId()}`;
  await writeFile(mine, JSON.stringify({ pid: process.pid, pid_started: ownStartMark(), boot_id: BOOT_ID }));
  try {
    while (!(await taken(mine, path))) {
      await dropStale(path);
      await sleep(POLL_MS, signal);
    }
  } finally {
    await unlink(mine);
  }
  const renewal = setInterval(() => {
    const now = new Date();
    // If the lock file is gone, the work continues, because its result appears in one step.
    utimes(path, now, now).catch(() => undefined);
  }, RENEW_MS);
  try {
    return await work();
  } finally {
    clearInterval(renewal);
    await unlink(path).catch(ignoreAbsent);
  }
}

/** Tries to take the lock. link(2) fails if the name exists, so a lock file always contains its owner. */
async function taken(mine: string, path: string): Promise<boolean> {
  try {
    const now = new Date();
    await utimes(mine, now, now);
    await link(mine, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

async function dropStale(path: string): Promise<void> {
  try {
    const [owner, { mtimeMs }] = await Promise.all([readJsonFile(path, Owner), stat(path)]);
    const silent = Date.now() - mtimeMs;
    // `alive` is null for a process of another node or namespace, which is judged only by its last renewal.
    const isElsewhere = owner?.boot_id !== undefined && owner.boot_id !== BOOT_ID;
    const alive = owner === null || isElsewhere ? null : isProcessAlive(owner);
    // While the lock is renewed, a dead pid is no proof: the owner may be in another container on this node.
    if (silent < STALE_MS && (alive !== false || silent < 3 * RENEW_MS)) return;
    const doomed = `${path}.${newId()}`;
    await rename(path, doomed);
    await unlink(doomed);
  } catch (error) {
    ignoreAbsent(error);
  }
}

function ignoreAbsent(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
}
