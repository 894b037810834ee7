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
 * Returns a line whose `artifact_file` is absolute. The stored path is relative to the folder in which the collector ran, or, if the output
 * and its copies were moved together, to the folder of the output.
 */
export function withCopyOf<T extends Pick<OutputLine, 'artifact_file'>>(line: T, output: string): T {
  const { artifact_file: copy } = line;
  if (copy === undefined) return line;
  const paths = [resolve(copy), resolve(dirname(output), copy)];
  return { ...line, artifact_file: paths.find((path) => existsSync(path)) ?? resolve(copy) };
}

/**
 * Returns the artifact of a line; null when the line has none. Calls `farm` only for an artifact in the farm's store.
 * `artifact_file` is a path from {@link withCopyOf}.
 * @throws UsageError when the copy that the line names cannot be read; SwefarmError `artifact_missing` when the artifact is gone
 */
export async function artifactOfLine(
  line: Pick<OutputLine, 'artifact' | 'artifact_file'>,
  farm: () => Promise<Farm>,
): Promise<ArtifactContent | null> {
  if (line.artifact_file !== undefined) return await decodeArtifact(await copyAt(line.artifact_file));
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
