/** Writes files and folders into a container through the engine's archive API. No program of the container runs. */
import { buffer } from 'node:stream/consumers';
import type Docker from 'dockerode';
import tar from 'tar-stream';
import { fileFailure } from '../engine/errors.ts';
import type { NewFolder, SandboxFile } from '../runtime.ts';
import { requireReadable } from './accounts.ts';
import { isLate } from './deadline.ts';
import { answerAbout } from './stoppedstarts.ts';

/** Replaces `folders`, then writes `files`. Throws RolloutFailure; the class is `sandbox_lost` if the engine cannot write. */
export async function putByEngine(
  container: Docker.Container,
  { folders = [], files }: { folders?: readonly NewFolder[]; files: readonly SandboxFile[] },
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const pack = tar.pack();
  const nameOf = (path: string): string => path.replace(/^\/+/, '');
  // The engine merges a folder of the archive into an existing folder. The engine replaces everything else at the path of an entry, also
  // a link. So the first entry, a file, removes the old folder. The second entry creates the new folder.
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
    // The removal of a folder times out if code inside left too many files in the folder.
    const late =
      folders.length > 0 && isLate(error) ? new Error('the folders are not replaced in time') : error;
    throw fileFailure(late, 'writing files into a container');
  }
}
