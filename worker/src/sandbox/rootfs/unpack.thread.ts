/** The body of an unpacking thread: opens the source, writes its layers into one tree, answers once. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { parentPort, workerData } from 'node:worker_threads';
import { errorMessage } from '@swefarm/shared';
import { readDockerArchive, readOciLayout } from '../../images/layers.ts';
import type { Unpacked } from '../../images/store.ts';
import { TreeWriter } from '../../images/tree.ts';
import { openEngine } from '../engine/client.ts';
import type { UnpackReply, UnpackTask } from './unpack.ts';

async function unpack({ source, partial, owners }: UnpackTask): Promise<Unpacked> {
  const writer = new TreeWriter(join(partial, 'tree'), owners);
  if (source.kind === 'export') {
    const container = openEngine(source.socketPath).getContainer(source.container);
    // The stream is read directly: a wrapper would drop what it had not passed on when the connection closes.
    await writer.layer((await container.export()) as Readable);
    return { ...source.known, bytes: writer.bytes };
  }
  const spool = join(partial, 'spool');
  const image =
    source.kind === 'oci'
      ? readOciLayout(source.path, source.ref)
      : await readDockerArchive(source.path, spool);
  for (const layer of image.layers) await writer.layer(await layer());
  await rm(spool, { recursive: true, force: true });
  return { digest: image.digest, config: image.config, bytes: writer.bytes };
}

const answer = (reply: UnpackReply): void => parentPort?.postMessage(reply);

unpack(workerData as UnpackTask).then(
  (done) => answer({ done }),
  (error: unknown) => {
    answer({ message: errorMessage(error), code: (error as NodeJS.ErrnoException).code ?? null });
  },
);
