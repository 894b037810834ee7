/** Builds images in an engine. Concurrent callers on this node share one build of an image. */
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { createSemaphore, createSingleFlight, RolloutFailure } from '@swefarm/shared';
import type Docker from 'dockerode';
import tar from 'tar-stream';
import { withTag } from '../images/names.ts';
import type { ImageBuild, Runtime } from '../runtime.ts';
import { engineFailure, statusCode } from './errors.ts';
import { digestOf, type EngineImageDeps, findImage } from './images.ts';
import { removeUntagged } from './untagged.ts';

type Line = { stream?: string; error?: string };

/** Number of characters of the build's output in the message of a failure. */
const SHOWN = 200;
/** Time during which a failed build is not repeated. Otherwise each attempt of a group's rollouts would repeat the build. */
const REMEMBERED_MS = 300_000;
/** Line that Docker's builder prints after a step. The line contains the id of the step's image. */
const MADE = /^ ---> ([0-9a-f]{12})\n$/;

/** Period, in microseconds, to which the CPU quota of a step applies. */
const CPU_PERIOD = 100_000;

const STEP_FAILED = /returned a non-zero code|while running runtime: exit status/;
/** Temporary errors: a registry or the network fails during the pull of a base image, or a cached layer is removed during the build. */
const PASSING =
  /dial tcp|i\/o timeout|TLS handshake|too ?many ?requests|connection (?:refused|reset)|no such host|unexpected EOF|Client\.Timeout|no such image/i;

/**
 * Returns the function `build` of a runtime.
 * @param open returns the engine; it is called when a build is requested
 * @param atOnce number of concurrent builds
 */
export function createBuild(
  open: () => Pick<EngineImageDeps, 'docker' | 'pulled'>,
  atOnce = 2,
): NonNullable<Runtime['build']> {
  const builds = createSingleFlight<void>();
  const slots = createSemaphore(atOnce);
  const failed = new Map<string, { failure: RolloutFailure; until: number }>();
  const buildOnce = async (build: ImageBuild): Promise<void> => {
    const { docker, pulled } = open();
    // Another worker of this node may have built the image while this worker waited for the lock.
    if (await findImage(docker, build.name)) return;
    await slots.run(() => buildImage(docker, build));
    const found = await docker.getImage(withTag(build.name)).inspect();
    await pulled?.add(build.name, { id: found.Id, digest: digestOf(found), bytes: found.Size });
  };
  const remember = (name: string, error: unknown): void => {
    for (const [other, { until }] of failed) if (until < Date.now()) failed.delete(other);
    if (error instanceof RolloutFailure && ['image_build', 'image_not_built'].includes(error.failureClass))
      failed.set(name, { failure: error, until: Date.now() + REMEMBERED_MS });
  };
  return async (build, signal) => {
    const { docker, pulled } = open();
    if (await findImage(docker, build.name)) return;
    const known = failed.get(build.name);
    if (known && known.until > Date.now()) throw known.failure;
    const work = () => buildOnce(build);
    const exclusive = () => (pulled ? pulled.exclusive(build.name, work) : work());
    await builds.run(
      build.name,
      () =>
        exclusive().catch((error: unknown) => {
          remember(build.name, error);
          throw error;
        }),
      signal,
    );
  };
}

async function buildImage(docker: Docker, { name, files, timeoutMs, limits }: ImageBuild): Promise<void> {
  const pack = tar.pack();
  for (const [path, { content, executable }] of files)
    pack.entry({ name: path, mode: executable ? 0o755 : 0o644 }, Buffer.from(content));
  pack.finalize();
  const archive = await buffer(pack);
  const limit = AbortSignal.timeout(timeoutMs);
  const began = Date.now();
  const made: string[] = [];
  let printed = '';
  let problem: string | null = null;
  try {
    // With `layers: false`, Podman stores no layers of steps. Docker ignores the option.
    const options = {
      ...{ t: withTag(name), rm: true, forcerm: true, layers: false, abortSignal: limit },
      ...{ memory: limits.memoryBytes, memswap: limits.memoryBytes },
      ...{ cpuperiod: CPU_PERIOD, cpuquota: Math.round(limits.cpus * CPU_PERIOD) },
    };
    const stream = (await docker.buildImage(Readable.from([archive]), options)) as NodeJS.ReadableStream;
    await new Promise<void>((resolve, reject) => {
      const ended = (error: unknown) => {
        const why = error ?? (problem === null ? null : new Error(problem));
        if (why === null) resolve();
        else reject(why);
      };
      // If a step fails, the stream has a line with `error` and ends without an error.
      docker.modem.followProgress(stream, ended, ({ stream: text = '', error }: Line) => {
        const [, id] = MADE.exec(text) ?? [];
        if (id !== undefined) made.push(id);
        printed = (printed + text).slice(-SHOWN);
        problem ??= error ?? null;
      });
    });
  } catch (error) {
    if (limit.aborted)
      throw new RolloutFailure(
        'image_not_built',
        `the build of ${name} did not end in ${timeoutMs / 1000} s`,
      );
    throw buildFailure(error, problem, name, printed);
  } finally {
    await removeUntagged(docker, made, began);
  }
}

/** Returns the failure for an error of a build. @param problem error of a step; null if the engine or its connection failed */
function buildFailure(error: unknown, problem: string | null, name: string, printed: string): unknown {
  const doing = `building ${name}, which printed "${printed.replaceAll(/\s+/g, ' ').trim()}"`;
  const isOfTask = problem !== null || statusCode(error) === 400;
  const isPassing = problem !== null && PASSING.test(problem) && !STEP_FAILED.test(problem);
  if (!isOfTask || isPassing) return engineFailure(error, 'image_pull', doing);
  if (/no space left on device/i.test(`${problem} ${printed}`))
    return engineFailure(error, 'node_disk', doing);
  const why = problem ?? (error instanceof Error ? error.message : '');
  return new RolloutFailure('image_build', `${doing}: ${why.trim()}`.slice(0, 500), { cause: error });
}
