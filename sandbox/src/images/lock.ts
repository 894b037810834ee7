/**
 * A lock between processes of one node: a file with its owner, made in one step. The lock is taken from an owner that died, or that
 * has not renewed it for long (it may be in another process table).
 */
import { link, readFile, rename, stat, unlink, utimes, writeFile } from 'node:fs/promises';
import { isProcessAlive, newId, ownStartMark, sleep } from '@swefarm/shared';

const RENEW_MS = 2_000;
const STALE_MS = 30_000;
const POLL_MS = 100;

/** Waits for the lock, then runs `work` while holding it. Rejects with the signal's reason when aborted while waiting. */
export async function withLock<T>(path: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const mine = `${path}.${newId()}`;
  await writeFile(mine, JSON.stringify({ pid: process.pid, pid_started: ownStartMark() }));
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
    // A lock that is gone cannot be renewed; the work goes on, as its result appears in one step anyway.
    utimes(path, now, now).catch(() => undefined);
  }, RENEW_MS);
  try {
    return await work();
  } finally {
    clearInterval(renewal);
    await unlink(path).catch(ignoreAbsent);
  }
}

/** link(2) fails when the name exists: unlike with open-then-write, a lock always contains its owner. */
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
    const [text, { mtimeMs }] = await Promise.all([readFile(path, 'utf8'), stat(path)]);
    const owner = ownerIn(text);
    const silent = Date.now() - mtimeMs;
    // A process that cannot be seen from here is judged only by when it last renewed the lock.
    const alive = owner === null ? null : isProcessAlive(owner);
    // A dead pid alone is no proof while the lock is renewed: the owner may be in another container on this node.
    if (silent < STALE_MS && (alive !== false || silent < 3 * RENEW_MS)) return;
    const doomed = `${path}.${newId()}`;
    await rename(path, doomed);
    await unlink(doomed);
  } catch (error) {
    ignoreAbsent(error);
  }
}

/** Null for a file that a power cut left half written. */
function ownerIn(text: string): { pid: number; pid_started: string } | null {
  try {
    const { pid, pid_started } = JSON.parse(text) as { pid: number; pid_started: string };
    return typeof pid_started === 'string' ? { pid, pid_started } : null;
  } catch {
    return null;
  }
}

function ignoreAbsent(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
}
