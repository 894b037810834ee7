/** Writes into a container by the engine's archives, without a program of the container. */
import { buffer } from 'node:stream/consumers';
import type Docker from 'dockerode';
import tar from 'tar-stream';
import { engineFailure } from '../engine/errors.ts';
import type { NewFolder, SandboxFile } from '../runtime.ts';
import { requireReadable } from './accounts.ts';
import { isLate } from './deadline.ts';
import { answerAbout } from './stoppedstarts.ts';

/** Writes files, with `folders` before them. Throws RolloutFailure; class `sandbox_lost` if the engine cannot write. */
export async function putByEngine(
  container: Docker.Container,
  { folders = [], files }: { folders?: readonly NewFolder[]; files: readonly SandboxFile[] },
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const pack = tar.pack();
  const nameOf = (path: string): string => path.replace(/^\/+/, '');
  // An engine removes what is at the path of an entry, unless both are folders. It follows no link at the end of a path.
  for (const { path, mode } of folders) {
    const [parent = '', child] = nameOf(path).split('/');
    if (child !== undefined) pack.entry({ name: parent, type: 'directory', mode: 0o755 });
    pack.entry({ name: nameOf(path), mode }, '');
    pack.entry({ name: nameOf(path), type: 'directory', mode });
  }
  for (const { path, content, mode } of files)
    pack.entry({ name: nameOf(path), mode: mode ?? 0o644 }, Buffer.from(content));
  pack.finalize();
  const archive = await buffer(pack);
  try {
    await requireReadable(container);
    await answerAbout(container, container.putArchive(archive, { path: '/', abortSignal: signal }));
  } catch (error) {
    signal.throwIfAborted();
    // Code may have left so many files in a folder that their removal is late.
    const late =
      folders.length > 0 && isLate(error) ? new Error('the folders are not replaced in time') : error;
    throw engineFailure(late, 'sandbox_lost', 'writing files into a container');
  }
}
