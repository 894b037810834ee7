/**
 * Runs one unpacking in its own process, which writes files synchronously. A thread would leave up to 40 MiB of allocated memory in the
 * worker.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { untilAborted } from '@swefarm/shared';
import type { Unpacked } from '../images/store.ts';

/** `diffId`: digest of the uncompressed layer, which is checked. */
export type LayerFile = { path: string; diffId: string };

export type UnpackTask = {
  source:
    | { kind: 'docker-archive'; path: string }
    | { kind: 'oci'; path: string; ref: string | null }
    /** Layers in files, applied to the existing tree, the lowest first; digest and configuration are known. */
    | { kind: 'layers'; layers: LayerFile[]; known: Pick<Unpacked, 'digest' | 'config'> }
    /** A container of the image, exported by its engine; digest and configuration are known. */
    | { kind: 'export'; socketPath: string; container: string; known: Pick<Unpacked, 'digest' | 'config'> };
  /** Folder of the partial image. The tree is written to `tree`; all other files are removed at the end. */
  partial: string;
};

export type UnpackReply = { done: Unpacked } | { message: string; code: string | null };

/** Unpacks an image. Throws an Error with the code of the failed system call, if any. After an abort nothing more is written. */
export async function unpackApart(task: UnpackTask, signal?: AbortSignal): Promise<Unpacked> {
  signal?.throwIfAborted();
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
    return await (signal ? untilAborted(unpacked, signal) : unpacked);
  } finally {
    child.kill('SIGKILL');
    // A process that could not be started emits no exit event.
    if (child.pid !== undefined) await ended.promise;
  }
}
