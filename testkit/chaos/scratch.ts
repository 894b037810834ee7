/** Mounts a small file system for one worker's scratch folder, so that a test can fill it without filling the machine's disk. */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '../src/launchers/run.ts';

/** Workers claim nothing with less than 1 GiB free, so the size is 1 GiB and some space for the sandboxes. */
const SIZE_MIB = 1300;

export type SmallScratch = AsyncDisposable & {
  readonly path: string;
  /** Fills the file system; `free` undoes it. */
  fill(): Promise<void>;
  free(): Promise<void>;
};

/** Mounts a tmpfs at `path`. Needs root. */
export async function mountScratch(path: string): Promise<SmallScratch> {
  await mkdir(path, { recursive: true });
  await run('mount', ['-t', 'tmpfs', '-o', `size=${SIZE_MIB}m,mode=0755`, 'swefarm-chaos', path]);
  const ballast = join(path, '.ballast');
  return {
    path,
    async fill() {
      // dd fails when the file system is full, as intended. Sandboxes write at the same time.
      await run('dd', ['if=/dev/zero', `of=${ballast}`, 'bs=1M']).catch(() => undefined);
    },
    free: () => rm(ballast, { force: true }),
    async [Symbol.asyncDispose]() {
      await run('umount', ['--lazy', path]);
      await rm(path, { recursive: true, force: true });
    },
  };
}
