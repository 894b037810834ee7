/**
 * Runs one unpacking in a process of its own: files are written synchronously there, and the event loop stays free. In a thread, what an
 * image of any size took of the allocator's memory would stay with the worker for as long as it lives: 40 MiB.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { untilAborted } from '@swefarm/shared';
import type { Unpacked } from '../images/store.ts';

export type UnpackTask = {
  source:
    | { kind: 'docker-archive'; path: string }
    | { kind: 'oci'; path: string; ref: string | null }
    /** A container made from the image, exported by its engine; digest and configuration are already known. */
    | { kind: 'export'; socketPath: string; container: string; known: Pick<Unpacked, 'digest' | 'config'> };
  /** Folder of the partial image: the tree goes to `tree`, everything else is removed at the end. */
  partial: string;
  /** Keep the owners of the entries. */
  owners: boolean;
};

export type UnpackReply = { done: Unpacked } | { message: string; code: string | null };

/** Throws an Error with the code of the system call that failed, if one did; ends at once when aborted. Nothing is written afterwards. */
export async function unpackApart(task: UnpackTask, signal: AbortSignal): Promise<Unpacked> {
  signal.throwIfAborted();
  const child = fork(fileURLToPath(new URL('./unpack.thread.ts', import.meta.url)), {
    serialization: 'advanced',
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const ended = Promise.withResolvers<void>();
  child.once('exit', () => ended.resolve());
  try {
    const unpacked = new Promise<Unpacked>((resolve, reject) => {
      child.once('message', (reply: UnpackReply) => {
        if ('done' in reply) resolve(reply.done);
        else reject(Object.assign(new Error(reply.message), { code: reply.code }));
      });
      child.on('error', reject);
      child.once('exit', (code, by) => reject(new Error(`the unpacking process ended with ${by ?? code}`)));
    });
    child.send(task);
    return await untilAborted(unpacked, signal);
  } finally {
    child.kill('SIGKILL');
    // A process that could not be started has no end.
    if (child.pid !== undefined) await ended.promise;
  }
}
