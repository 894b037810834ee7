/** Free space on a node's disk, where its sandboxes write: on a full disk, neither an agent's work nor tests mean anything. */
import type { StatsFs } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { sleep } from '@swefarm/shared';
import type { Runtime } from './runtime.ts';

const FULL_BYTES = 16 * 1024 ** 2;
/** With fewer free inodes than this a disk counts as full, even if bytes are free: empty files can fill a disk too. */
const FULL_FILES = 1_024;

/**
 * Bytes that this user can still write below `folder`; 0 when no more files can be made there; null when the folder cannot be
 * seen (an engine on another machine).
 */
export async function diskFree(folder: string): Promise<number | null> {
  return statfs(folder).then(
    (stats) => (freeFiles(stats) < FULL_FILES ? 0 : stats.bavail * stats.bsize),
    () => null,
  );
}

/** Free inodes; infinite where the file system does not count them (btrfs). */
export const freeFiles = ({ files, ffree }: Pick<StatsFs, 'files' | 'ffree'>): number =>
  files > 0 ? ffree : Number.POSITIVE_INFINITY;

/** Looks that a full disk must outlast: code that fills it and frees it again at once is no evidence about the node. */
const LOOKS = 4;
const BETWEEN_LOOKS_MS = 50;

/** Whether it is full and stays so for a moment. False also when the disk cannot be seen. */
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
  /** Whether the disk was found full since the watch began, and the watched sandbox was not the cause. */
  wasFull(): Promise<boolean>;
};

/**
 * Checks the disk at intervals: commands fail on a disk that is full for a while, even if it is free again at the end. Calls
 * `isCausedBySandbox` each time the disk becomes full.
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
    // A sandbox that has freed the disk meanwhile is measured too late; others that fill it do not depend on when it is measured.
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
