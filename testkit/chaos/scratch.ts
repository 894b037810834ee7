/** A small file system for one worker's scratch folder, so that it can be full while the machine's disk is not. */
import { execFile } from 'node:child_process';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Workers claim nothing with less than 1 GiB free: a little more than that, and what the sandboxes write. */
const SIZE_MIB = 1300;

export type SmallScratch = AsyncDisposable & {
  readonly path: string;
  /** Takes every free block; `free` gives them back. */
  fill(): Promise<void>;
  free(): Promise<void>;
};

/** A tmpfs at `path`. Needs root. */
export async function mountScratch(path: string): Promise<SmallScratch> {
  await mkdir(path, { recursive: true });
  await run('mount', ['-t', 'tmpfs', '-o', `size=${SIZE_MIB}m,mode=0755`, 'swefarm-chaos', path]);
  const ballast = join(path, '.ballast');
  return {
    path,
    async fill() {
      // It ends with an error when nothing more fits, which is what is wanted; sandboxes write at the same time.
      await run('dd', ['if=/dev/zero', `of=${ballast}`, 'bs=1M']).catch(() => undefined);
    },
    free: () => rm(ballast, { force: true }),
    async [Symbol.asyncDispose]() {
      await run('umount', ['--lazy', path]);
      await rm(path, { recursive: true, force: true });
    },
  };
}
