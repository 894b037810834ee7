/**
 * For `swefarm images`: reports which images exist at `apptainer_images`, and whether they are unchanged since their conversion. The
 * record `PATH.origin.json` beside a .sif file names its origin. `swefarm images convert` writes the record before the image appears.
 * Other .sif files have no record.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { errorMessage, RolloutFailure, replaceFile, UsageError, withoutMiddle } from '@swefarm/shared';
import { z } from 'zod';
import { withTag } from '../images/names.ts';
import type { ImageInspection, ImageLine } from '../runtime.ts';
import { findSif } from './images.ts';
import { candidatePaths } from './sifpaths.ts';

const Origin = z.object({
  image: z.string(),
  sha256: z.string(),
  bytes: z.number(),
  converted_at: z.string(),
});
type Origin = z.infer<typeof Origin>;

const fileOf = (path: string): string => `${path}.origin.json`;

/** Returns null if there is no record. Throws RolloutFailure image_pull for an invalid record. */
async function readOrigin(path: string): Promise<Origin | null> {
  const text = await readFile(fileOf(path), 'utf8').catch(() => null);
  if (text === null) return null;
  try {
    return Origin.parse(JSON.parse(text));
  } catch (error) {
    throw new RolloutFailure('image_pull', withoutMiddle(`${fileOf(path)}: ${errorMessage(error)}`, 400));
  }
}

export const writeOrigin = (path: string, origin: Origin): Promise<void> =>
  replaceFile(fileOf(path), JSON.stringify(origin));

export async function sha256Of(path: string, signal?: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash, signal ? { signal } : {});
  return hash.digest('hex');
}

export function inspectSifFiles(templates: readonly string[]): ImageInspection {
  const one = async (image: string, verify: boolean, instance: string | undefined): Promise<ImageLine> => {
    const existing = await findSif(templates, image, instance);
    if (!existing) {
      const [path] = candidatePaths(templates, image, undefined);
      return { image, status: 'absent', ...(path ? { path } : { error: 'apptainer_images is not set' }) };
    }
    const { path, found } = existing;
    const line = { image, path, ...(found.isFile() ? { bytes: found.size } : {}) };
    const origin = found.isFile() ? await readOrigin(path) : null;
    if (!origin) return { ...line, status: 'present' };
    const changed = (error: string): ImageLine => ({
      ...line,
      status: 'changed',
      error: `${path}: ${error}`,
    });
    if (withTag(origin.image) !== withTag(image)) return changed(`it was made of ${origin.image}`);
    if (origin.bytes !== found.size)
      return changed(`${found.size} bytes are there, ${origin.bytes} were written`);
    if (verify && (await sha256Of(path)) !== origin.sha256)
      return changed('its content is not what was written');
    return { ...line, status: 'present', digest: `sha256:${origin.sha256}` };
  };

  return {
    async look(image, verify, instances) {
      const lines: ImageLine[] = [];
      for (const instance of instances.length > 0 ? instances : [undefined]) {
        const line = await one(image, verify && !lines.some(({ path }) => path), instance);
        if (line.status !== 'present') return line;
        lines.push(line);
      }
      return lines[0] as ImageLine;
    },
    prune: () =>
      Promise.reject(
        new UsageError(
          'prune: .sif files may be other nodes’ and datasets’ too, so they are yours to remove; it is for docker and podman',
        ),
      ),
  };
}
