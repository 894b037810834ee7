/** Runs one unpacking in its own thread: files are written synchronously there, and the event loop stays free. */

import { Worker } from 'node:worker_threads';
import { untilAborted } from '@swefarm/shared';
import type { Unpacked } from '../../images/store.ts';

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

/** Throws an Error with the code of the system call that failed, if one did; ends at once when aborted. */
export async function unpackInThread(task: UnpackTask, signal: AbortSignal): Promise<Unpacked> {
  signal.throwIfAborted();
  const thread = new Worker(new URL('./unpack.thread.ts', import.meta.url), { workerData: task });
  try {
    const unpacked = new Promise<Unpacked>((resolve, reject) => {
      thread.once('message', (reply: UnpackReply) => {
        if ('done' in reply) resolve(reply.done);
        else reject(Object.assign(new Error(reply.message), { code: reply.code }));
      });
      thread.once('error', reject);
      thread.once('exit', (code) => reject(new Error(`the unpacking thread ended with code ${code}`)));
    });
    return await untilAborted(unpacked, signal);
  } finally {
    await thread.terminate();
  }
}
