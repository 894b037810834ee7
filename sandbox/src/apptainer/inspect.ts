/** For `swefarm images`: reports which images exist at `apptainer_images`, and whether they are unchanged since their conversion. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { UsageError } from '@swefarm/shared';
import type { ImageInspection, ImageLine } from '../runtime.ts';
import { findSif } from './images.ts';
import { readOrigin } from './origin.ts';
import { candidatePaths } from './sifpaths.ts';

export async function sha256Of(path: string, signal?: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash, signal ? { signal } : {});
  return hash.digest('hex');
}

export function inspectSifFiles(templates: readonly string[]): ImageInspection {
  const one = async (image: string, verify: boolean, instance: string | undefined): Promise<ImageLine> => {
    const { existing, others } = await findSif(templates, image, instance);
    const [other] = others;
    if (!existing && other)
      return {
        ...{ image, path: other.path, status: 'changed' },
        error: `${other.path}: it was made of ${other.image}`,
      };
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
