/**
 * Named pipes for the streams of commands, made in batches and used once. Node's own pipes are sockets, which a command cannot
 * reopen as /dev/stdout or /dev/stderr.
 */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { newId } from '@swefarm/shared';
import { run } from '../run.ts';

const BATCH = 384;

export type Pipes = Awaited<ReturnType<typeof openPipes>>;

/** @param folder contains only the pipes. Disposing removes the folder. */
export async function openPipes(folder: string) {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  let free: string[] = [];
  let making: Promise<void> | null = null;
  const make = async (): Promise<void> => {
    const names = Array.from({ length: BATCH }, () => join(folder, newId()));
    // Writable for all users: a command may run as another user and reopen /dev/stderr.
    await run('mkfifo', ['-m', '666', ...names]);
    free = free.concat(names);
  };
  const refill = (): Promise<void> => {
    making ??= make().finally(() => {
      making = null;
    });
    return making;
  };
  return {
    /** Returns paths of new pipes. The caller unlinks them when both ends are open. */
    async take(count: number): Promise<string[]> {
      while (free.length < count) await refill();
      const taken = free.splice(-count);
      // Makes pipes in advance. A failure appears when the last pipe is used.
      if (free.length < BATCH / 4) refill().catch(() => undefined);
      return taken;
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await making?.catch(() => undefined);
      await rm(folder, { recursive: true, force: true });
    },
  };
}
