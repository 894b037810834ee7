/** The part of an image's configuration that the rootfs and Apptainer runtimes use. */
import { readFile } from 'node:fs/promises';
import { errorMessage, RolloutFailure } from '@swefarm/shared';
import { z } from 'zod';

export const ImageConfig = z.object({
  env: z.record(z.string(), z.string()),
  /** Working folder; '' if the image names none. */
  workdir: z.string(),
  /** `user[:group]` by name or number; '' is root. */
  user: z.string(),
  /** ENTRYPOINT of the image; absent if the image has no entrypoint. */
  entrypoint: z.array(z.string()).optional(),
});
export type ImageConfig = z.infer<typeof ImageConfig>;

export const EMPTY_CONFIG: ImageConfig = { env: {}, workdir: '', user: '' };

const Foreign = z.object({
  Env: z.array(z.string()).nullish(),
  WorkingDir: z.string().nullish(),
  User: z.string().nullish(),
  Entrypoint: z.array(z.string()).nullish(),
});

/** Reads the `Config` of `docker inspect`, or the `config` of a docker-archive or OCI image. Throws ZodError. */
export function readConfig(foreign: unknown): ImageConfig {
  const { Env, WorkingDir, User, Entrypoint } = Foreign.parse(foreign ?? {});
  const env: Record<string, string> = {};
  for (const line of Env ?? []) {
    const at = line.indexOf('=');
    if (at > 0) env[line.slice(0, at)] = line.slice(at + 1);
  }
  const entrypoint = Entrypoint?.length ? { entrypoint: Entrypoint } : {};
  return { env, workdir: WorkingDir ?? '', user: User ?? '', ...entrypoint };
}

/**
 * Returns the image configuration in `PATH.json`, for an image file without one. The format is `Config` of `docker inspect`. Returns null
 * if there is no such file. Throws RolloutFailure image_pull for an invalid file.
 */
export async function configBeside(path: string): Promise<ImageConfig | null> {
  const file = `${path}.json`;
  const text = await readFile(file, 'utf8').catch(() => null);
  if (text === null) return null;
  try {
    return readConfig(JSON.parse(text));
  } catch (error) {
    throw new RolloutFailure(
      'image_pull',
      `${file} is no image configuration: ${errorMessage(error)}`.slice(0, 400),
    );
  }
}
