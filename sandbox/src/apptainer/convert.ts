/**
 * Converts an image of an engine or a registry, or an archive, to a .sif file with `apptainer build`. The file is built under a temporary name and renamed
 * after the record of its origin is written. The next conversion of the image removes the leftovers of a killed conversion.
 */
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import {
  createSemaphore,
  errorMessage,
  RolloutFailure,
  UnusableError,
  UsageError,
  withoutMiddle,
} from '@swefarm/shared';
import { withLock } from '../images/lock.ts';
import { withTag } from '../images/names.ts';
import { openTemporaryFolder, temporaryName } from '../images/temporary.ts';
import { findProgram } from '../namespaces/host.ts';
import { run } from '../run.ts';
import type { ImageLine } from '../runtime.ts';
import { inspectSifFiles, sha256Of } from './inspect.ts';
import { writeOrigin } from './origin.ts';
import { candidatePaths } from './sifpaths.ts';
import { ownEnvironment } from './start.ts';
import { FOLDERS, PROGRAMS } from './tools.ts';

const CONVERT_TIMEOUT_MS = 3_600_000;

/** `options` and `uri`: arguments of `apptainer build`. */
export type BuildSource = { options: readonly string[]; uri: string };

/** Returns the source of an image that the engine at a socket has. */
export const sourceInEngine = (image: string, socketPath: string): BuildSource => ({
  options: ['--docker-host', `unix://${socketPath}`],
  uri: `docker-daemon:${withTag(image)}`,
});

export type ConvertDeps = {
  /** Path templates of the setting `apptainer_images`. Conversions use the first template. */
  templates: readonly string[];
  /** Program of the setting `apptainer_command`; null: search for apptainer or singularity. */
  command: string | null;
  /** Folder where images are unpacked during a conversion. The folder needs space for `atOnce` images. */
  folder: string;
  atOnce: number;
  /** Makes an image ready and passes where Apptainer reads it to `work`. Throws RolloutFailure, UnusableError and errors of `work`. */
  withSource(image: string, work: (source: BuildSource) => Promise<void>): Promise<void>;
  signal: AbortSignal;
};

type Converter = {
  /** Converts an image unless its file exists. Throws RolloutFailure image_pull / node_disk, and errors of `withSource`. */
  convert(image: string): Promise<ImageLine>;
};

/** Throws UsageError if the first template has no placeholder, UnusableError if Apptainer is missing or does not run. */
export async function openConverter(deps: ConvertDeps): Promise<Converter> {
  const [template] = deps.templates;
  if (!template || !/\{(image|instance_id)\}/.test(template)) {
    throw new UsageError(
      'convert: set apptainer_images to a path with {image}, such as /shared/sif/{image}.sif',
    );
  }
  const program = await requireProgram(deps.command);
  const slots = createSemaphore(deps.atOnce);
  const look = (image: string): Promise<ImageLine> => inspectSifFiles([template]).look(image, false, []);
  const images = new Map<string, string>();
  const convert: Converter['convert'] = async (image) => {
    const [path = ''] = candidatePaths([template], image, undefined);
    const other = images.get(path);
    if (other)
      throw new RolloutFailure('image_pull', `${path} is ${other}'s already: convert them to two folders`);
    images.set(path, image);
    const found = await look(image);
    if (isFinal(found, path)) return found;
    const make = async (): Promise<ImageLine> => {
      await removePartials(path);
      // Another process may have converted the image during the wait for the lock.
      const present = await look(image);
      return isFinal(present, path) ? present : await writeSif(deps, program, image, path);
    };
    return await slots.run(async () => {
      await mkdir(dirname(path), { recursive: true });
      return await withLock(`${path}.lock`, make, deps.signal);
    });
  };
  return { convert };
}

/** Returns whether nothing is converted: the image exists, or another file exists at the path of the conversion. */
const isFinal = ({ status, path }: ImageLine, target: string): boolean =>
  status === 'present' || (status === 'changed' && path === target);

async function writeSif(deps: ConvertDeps, program: string, image: string, path: string): Promise<ImageLine> {
  const partial = `${path}.${temporaryName()}.partial`;
  try {
    await build(deps, program, image, partial);
    const [sha256, { size }] = await Promise.all([sha256Of(partial, deps.signal), stat(partial)]);
    const converted_at = new Date().toISOString();
    await writeOrigin(path, { image, sha256, bytes: size, converted_at });
    await rename(partial, path);
    return { image, status: 'converted', path, bytes: size, digest: `sha256:${sha256}` };
  } finally {
    await rm(partial, { force: true });
  }
}

async function build(deps: ConvertDeps, program: string, image: string, partial: string): Promise<void> {
  // `apptainer build` reads archives itself.
  if (/^(docker-archive|oci):\//.test(image))
    await buildFrom(deps, program, image, { options: [], uri: image }, partial);
  else await deps.withSource(image, (source) => buildFrom(deps, program, image, source, partial));
  await using file = await open(partial);
  await file.sync();
}

async function buildFrom(
  { folder: parent, signal }: ConvertDeps,
  program: string,
  image: string,
  { options, uri }: BuildSource,
  partial: string,
): Promise<void> {
  await using folder = await openTemporaryFolder(parent);
  const line = ['--silent', 'build', '--disable-cache', '--force', ...options, partial, uri];
  await run(program, line, {
    ...{ timeout: CONVERT_TIMEOUT_MS, signal, env: ownEnvironment(folder.path) },
  }).catch((error: unknown) => {
    signal.throwIfAborted();
    throw buildFailure(error, image);
  });
}

async function requireProgram(given: string | null): Promise<string> {
  const found = given ?? (await findProgram(PROGRAMS, FOLDERS));
  const problem =
    found === null ? 'there is none' : await run(found, ['--version']).then(() => null, errorMessage);
  if (found !== null && problem === null) return found;
  throw new UnusableError(
    'apptainer',
    `convert needs apptainer or singularity (${problem?.split('\n', 1)[0]}): install it, or name it with apptainer_command`,
  );
}

async function removePartials(path: string): Promise<void> {
  const start = `${basename(path)}.`;
  for (const name of await readdir(dirname(path))) {
    if (name.startsWith(start) && name.endsWith('.partial'))
      await rm(join(dirname(path), name), { force: true });
  }
}

/** Returns a failure with the last line of Apptainer's errors, without colours and log level. */
function buildFailure(error: unknown, image: string): RolloutFailure {
  const { stderr = '', killed } = error as { stderr?: string; killed?: boolean };
  const lines = stripVTControlCharacters(stderr)
    .split('\n')
    .filter((line) => line.trim() !== '');
  const reason = killed
    ? 'not done within an hour'
    : (lines.at(-1) ?? errorMessage(error)).replace(/^[A-Z]+:\s+(While performing build: )?/, '');
  const full = /no space left|disk quota exceeded/i.test(stderr);
  return full
    ? new RolloutFailure(
        'node_disk',
        `converting ${image}: no space left: images_dir takes it unpacked, the folder of the .sif file takes that`,
      )
    : new RolloutFailure('image_pull', withoutMiddle(`converting ${image}: ${reason}`, 400));
}
