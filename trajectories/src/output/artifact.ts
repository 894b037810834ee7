/** Reads the artifact of an output line: from the copy beside the output, from a folder of artifacts, or from the farm. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import {
  type ArtifactContent,
  decodeArtifact,
  errorMessage,
  type Farm,
  isArtifactFile,
  readArtifactFile,
  UsageError,
} from '@swefarm/shared';
import type { OutputLine } from './line.ts';

/**
 * Returns the absolute path of the copy that a line names; null: it names none. The stored path is relative to the folder in which the
 * collector ran, or, if the output and its copies were moved together, to the folder of the output.
 */
export function copyOf(
  { artifact_file: copy }: Pick<OutputLine, 'artifact_file'>,
  output: string,
): string | null {
  if (copy === undefined) return null;
  const paths = [resolve(copy), resolve(dirname(output), copy)];
  return paths.find((path) => existsSync(path)) ?? resolve(copy);
}

/**
 * Returns the artifact of a line of the file `output`; null when the line has none. Calls `farm` only for an artifact in the farm's store.
 * @throws UsageError when the copy that the line names cannot be read; SwefarmError `artifact_missing` when the artifact is gone
 */
export async function artifactOfLine(
  line: Pick<OutputLine, 'artifact' | 'artifact_file'>,
  output: string,
  farm: () => Promise<Farm>,
): Promise<ArtifactContent | null> {
  const copy = copyOf(line, output);
  if (copy !== null) return await decodeArtifact(await copyAt(copy));
  if (line.artifact === null) return null;
  if (isArtifactFile(line.artifact)) return await readArtifactFile(line.artifact);
  return await (await farm()).artifacts.read(line.artifact);
}

async function copyAt(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    throw new UsageError(`its artifact ${path} cannot be read: ${errorMessage(error)}`, { cause: error });
  }
}
