/** Free space on the disk of the sandboxes. On a full disk, neither an agent's work nor tests are meaningful. */
import type { StatsFs } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { sleep } from '@swefarm/shared';
import type { Runtime } from './runtime.ts';

const FULL_BYTES = 16 * 1024 ** 2;
/** A disk with fewer free inodes counts as full: empty files can fill a disk too. */
const FULL_FILES = 1_024;

/**
 * Returns the bytes that this user can write below `folder`; 0 if no more files can be made there; null if the folder is invisible (an
 * engine on another machine).
 */
export async function diskFree(folder: string): Promise<number | null> {
  return statfs(folder).then(
    (stats) => (freeFiles(stats) < FULL_FILES ? 0 : stats.bavail * stats.bsize),
    () => null,
  );
}

/** Returns the free inodes; infinite if the file system does not count them (btrfs). */
export const freeFiles = ({ files, ffree }: Pick<StatsFs, 'files' | 'ffree'>): number =>
  files > 0 ? ffree : Number.POSITIVE_INFINITY;

/** Number of consecutive checks that must find the disk full, because code may fill the disk and free it at once. */
const LOOKS = 4;
const BETWEEN_LOOKS_MS = 50;

export async function diskIsFull(runtime: Pick<Runtime, 'diskFree'>): Promise<boolean> {
  for (let look = 1; ; look++) {
    const free = await runtime.diskFree?.().catch(() => null);
    if (typeof free !== 'number' || free >= FULL_BYTES) return false;
    if (look === LOOKS) return true;
    await sleep(BETWEEN_LOOKS_MS);
  }
}

const LOOK_MS = 250;

export type DiskWatch = Disposable & {
  /** Returns whether the disk was full at any time since the watch began, and the watched sandbox was not the cause. */
  wasFull(): Promise<boolean>;
};

/**
 * Checks the disk at intervals, because commands fail on a disk that is full only for a while. Calls `isCausedBySandbox` each
 * time the disk becomes full.
 */
export function watchDisk(
  runtime: Pick<Runtime, 'diskFree'>,
  isCausedBySandbox: () => Promise<boolean>,
): DiskWatch {
  let byOthers = false;
  let isFull = false;
  let looking: Promise<void> = Promise.resolve();
  const look = async (): Promise<void> => {
    const before = isFull;
    isFull = await diskIsFull(runtime);
    if (!isFull || before || (await isCausedBySandbox().catch(() => false))) return;
    // If the disk is no longer full, the watched sandbox may have freed it before the measurement.
    byOthers = await diskIsFull(runtime);
  };
  let busy = false;
  const timer = setInterval(() => {
    if (busy || byOthers) return;
    busy = true;
    looking = look().finally(() => {
      busy = false;
    });
  }, LOOK_MS);
  timer.unref();
  return {
    async wasFull() {
      await looking;
      return byOthers;
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}
