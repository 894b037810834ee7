/**
 * The unpacking process: opens the source, writes its layers into one tree, and sends one reply. The process ends with its worker. The
 * file's name ends in `.thread`, because such files are bundled separately.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { errorMessage } from '@swefarm/shared';
import { openEngine } from '../engine/client.ts';
import { openLayer, readDockerArchive, readOciLayout } from '../images/layers.ts';
import type { Unpacked } from '../images/store.ts';
import { TreeWriter } from '../images/tree.ts';
import type { UnpackReply, UnpackTask } from './unpack.ts';

async function unpack({ source, partial }: UnpackTask): Promise<Unpacked> {
  const writer = new TreeWriter(join(partial, 'tree'), process.getuid?.() === 0);
  if (source.kind === 'export') {
    const container = openEngine(source.socketPath).getContainer(source.container);
    // The stream is read directly: a wrapper would lose buffered data when the connection closes.
    await writer.layer((await container.export()) as Readable);
    return { ...source.known, bytes: writer.bytes };
  }
  if (source.kind === 'layers') {
    for (const { path, diffId } of source.layers) await writer.layer(await openLayer(path, diffId));
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

const answer = (reply: UnpackReply): void => void process.send?.(reply);

process.once('disconnect', () => process.exit());
// A terminal sends signals to all processes of its group, but only the worker ends this process.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
process.once('message', (task) => {
  unpack(task as UnpackTask).then(
    (done) => answer({ done }),
    (error: unknown) => {
      answer({ message: errorMessage(error), code: (error as NodeJS.ErrnoException).code ?? null });
    },
  );
});
