/**
 * Real pipes for the output of commands. Node's own are sockets, which cannot be reopened as /dev/stdout or /dev/stderr;
 * these are fifos, made in batches by one process and unlinked as soon as both ends are open.
 */
import { execFile } from 'node:child_process';
import { close, constants, open as openFile } from 'node:fs';
import { mkdir, rm, unlink } from 'node:fs/promises';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { newId } from '@swefarm/shared';

const run = promisify(execFile);
const open = promisify(openFile);
const BATCH = 128;

export type OutputPipe = {
  output: Socket;
  /** For the child's stdout and stderr; the caller closes it once the child has it. */
  end: number;
};

export type Pipes = AsyncDisposable & { open(): Promise<OutputPipe> };

/** @param folder contains only the pipes, and is removed with them. */
export async function openPipes(folder: string): Promise<Pipes> {
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
    async open() {
      while (free.length === 0) await refill();
      const path = free.pop() as string;
      // Makes pipes before they are needed; a failure shows when the last one has been used.
      if (free.length < BATCH / 4) refill().catch(() => undefined);
      // Opens the reading end first and without waiting, or each open would wait for the other.
      const reader = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
      try {
        const end = await open(path, constants.O_WRONLY);
        return { output: new Socket({ fd: reader, readable: true, writable: false }), end };
      } catch (error) {
        close(reader);
        throw error;
      } finally {
        await unlink(path);
      }
    },
    async [Symbol.asyncDispose]() {
      await making?.catch(() => undefined);
      await rm(folder, { recursive: true, force: true });
    },
  };
}
