/**
 * `swefarm-worker images ACTION`: the images of this node by name, for people and for `swefarm images`, which calls it. Names
 * come on stdin, one a line; answers are JSON lines, one an image, as they are known.
 */
import { execFile } from 'node:child_process';
import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { errorMessage, newId, UsageError, type WorkerConfig } from '@swefarm/shared';
import type { Logger } from 'pino';
import { chooseRuntime } from '../runtimes.ts';
import type { ImageLine, KnownImages, Runtime } from '../sandbox/runtime.ts';
import { withLock } from './lock.ts';

export const IMAGE_ACTIONS = ['list', 'pull', 'convert', 'prune', 'verify'] as const;
export type ImageAction = (typeof IMAGE_ACTIONS)[number];

const run = promisify(execFile);
const CONVERT_TIMEOUT_MS = 3_600_000;

export type ImagesCommand = {
  config: WorkerConfig;
  log: Logger;
  signal: AbortSignal;
  say(line: ImageLine): void;
};

/** True when nothing failed and nothing asked for is missing. Throws UnusableError `runtime`; UsageError. */
export async function runImages(
  action: ImageAction,
  names: readonly string[],
  command: ImagesCommand,
): Promise<boolean> {
  const { config, log, signal, say } = command;
  const { runtime } = await chooseRuntime(config, log, signal);
  await using _runtime = runtime;
  let well = true;
  const each = async (image: string, work: () => Promise<ImageLine>): Promise<void> => {
    const line = await work().catch(
      (error: unknown): ImageLine => ({ image, status: 'failed', error: errorMessage(error) }),
    );
    if (['absent', 'changed', 'failed'].includes(line.status)) well = false;
    say(line);
  };
  if (action === 'prune') {
    for (const line of await knownOf(runtime).prune(new Set(names))) say(line);
    return true;
  }
  const convert = action === 'convert' ? converter(config, signal) : null;
  await Promise.all(
    names.map((image) =>
      each(image, async () => {
        if (convert) return await convert(image, async () => void (await runtime.ensureImage(image, signal)));
        if (action === 'pull') {
          const ready = await runtime.ensureImage(image, signal);
          return { image, status: ready.pulled ? 'pulled' : 'present', digest: ready.digest };
        }
        return await knownOf(runtime).look(image, action === 'verify');
      }),
    ),
  );
  return well;
}

function knownOf(runtime: Runtime): KnownImages {
  if (runtime.known) return runtime.known;
  throw new UsageError(
    `runtime ${runtime.name}: list, verify and prune need an engine (docker or podman); pull works everywhere`,
  );
}

/** Engine → .sif by `apptainer build`, under another name until it is whole. */
function converter(config: WorkerConfig, signal: AbortSignal) {
  const [template] = config.apptainer_images;
  if (!template?.includes('{image}')) {
    throw new UsageError(
      'convert: set apptainer_images to a path with {image}, such as /shared/sif/{image}.sif',
    );
  }
  return async (image: string, ensure: () => Promise<void>): Promise<ImageLine> => {
    const base = image.slice(image.lastIndexOf('/') + 1).split(/[:@]/, 1)[0] ?? image;
    const path = template.replaceAll('{image}', base);
    const there = await stat(path).catch(() => null);
    if (there) return { image, status: 'present', path, bytes: there.size };
    await ensure();
    await mkdir(dirname(path), { recursive: true });
    return await withLock(`${path}.lock`, signal, async () => {
      const partial = `${path}.${newId()}.partial`;
      try {
        const program = config.apptainer_command ?? 'apptainer';
        await run(program, ['build', '--disable-cache', partial, `docker-daemon:${withLatest(image)}`], {
          timeout: CONVERT_TIMEOUT_MS,
          signal,
        });
        await rename(partial, path);
      } finally {
        await rm(partial, { force: true });
      }
      return { image, status: 'converted', path, bytes: (await stat(path)).size };
    });
  };
}

const withLatest = (image: string): string =>
  /[:@]/.test(image.slice(image.lastIndexOf('/') + 1)) ? image : `${image}:latest`;
