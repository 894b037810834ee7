/** Builds images in an engine, once for all callers. */
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { createSingleFlight, RolloutFailure } from '@swefarm/shared';
import type Docker from 'dockerode';
import tar from 'tar-stream';
import { withTag } from '../images/names.ts';
import type { ImageBuild, Runtime } from '../runtime.ts';
import { engineFailure } from './errors.ts';
import { digestOf, type EngineImageDeps, findImage } from './images.ts';

type Line = { stream?: string; error?: string };

/** Characters of the build's output that a failure contains. */
const SHOWN = 200;

/** Returns the function `build` of a runtime. @param open opens the engine at the first build */
export function createBuild(
  open: () => Pick<EngineImageDeps, 'docker' | 'pulled'>,
): NonNullable<Runtime['build']> {
  const builds = createSingleFlight<void>();
  return async (build, signal) => {
    const { docker, pulled } = open();
    if (await findImage(docker, build.name)) return;
    await builds.run(build.name, () => buildImage(docker, build), signal);
    const found = await docker.getImage(withTag(build.name)).inspect();
    await pulled?.add(build.name, { id: found.Id, digest: digestOf(found), bytes: found.Size });
  };
}

async function buildImage(docker: Docker, { name, files, timeoutMs }: ImageBuild): Promise<void> {
  const pack = tar.pack();
  for (const [path, { content, executable }] of files)
    pack.entry({ name: path, mode: executable ? 0o755 : 0o644 }, Buffer.from(content));
  pack.finalize();
  const archive = await buffer(pack);
  const limit = AbortSignal.timeout(timeoutMs);
  let printed = '';
  try {
    const options = { t: withTag(name), rm: true, forcerm: true, abortSignal: limit };
    const stream = (await docker.buildImage(Readable.from([archive]), options)) as NodeJS.ReadableStream;
    await new Promise<void>((resolve, reject) => {
      let problem: string | null = null;
      const ended = (error: unknown) => {
        const why = error ?? (problem === null ? null : new Error(problem));
        if (why === null) resolve();
        else reject(why);
      };
      // A failed step is a line of a stream that ends without an error.
      docker.modem.followProgress(stream, ended, ({ stream: text = '', error }: Line) => {
        printed = (printed + text).slice(-SHOWN);
        problem ??= error ?? null;
      });
    });
  } catch (error) {
    if (limit.aborted)
      throw new RolloutFailure('image_build', `the build of ${name} did not end in ${timeoutMs / 1000} s`);
    const end = printed.replaceAll(/\s+/g, ' ').trim();
    throw engineFailure(error, 'image_build', `building ${name}, which printed "${end}"`);
  }
}
