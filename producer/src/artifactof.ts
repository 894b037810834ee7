/** The artifact of a line of an output: from the copy beside it, from a folder, or from the farm. */
import { readFile } from 'node:fs/promises';
import { type ArtifactContent, decodeArtifact, type Farm } from '@swefarm/shared';
import type { OutputLine } from './line.ts';

/** Null when none was kept; `farm` is called only when the artifact lies in Redis. */
export async function artifactOfLine(
  line: Pick<OutputLine, 'artifact' | 'artifact_file'>,
  farm: () => Promise<Farm>,
): Promise<ArtifactContent | null> {
  if (line.artifact_file !== undefined) return await decodeArtifact(await readFile(line.artifact_file));
  if (line.artifact === null) return null;
  const path = /^(?:dir:|file:\/\/)?(\/.+)$/.exec(line.artifact)?.[1];
  if (path !== undefined) return await decodeArtifact(await readFile(path));
  return await decodeArtifact(await (await farm()).artifacts.get(line.artifact));
}
