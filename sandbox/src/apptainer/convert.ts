/**
 * Converts an engine's image or an archive to a .sif file with `apptainer build`. The file is built under a temporary name and renamed
 * after the record of its origin is written. The next conversion removes the leftovers of a killed conversion.
 */
import { execFile } from 'node:child_process';
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify, stripVTControlCharacters } from 'node:util';
import {
  createSemaphore,
  errorMessage,
  RolloutFailure,
  type Semaphore,
  UnusableError,
  UsageError,
  withoutMiddle,
} from '@swefarm/shared';
import { withLock } from '../images/lock.ts';
import { withTag } from '../images/names.ts';
import { openTemporaryFolder, temporaryName } from '../images/temporary.ts';
import { findProgram } from '../namespaces/host.ts';
import type { ImageInspection, ImageLine } from '../runtime.ts';
import { inspectSifFiles, sha256Of, writeOrigin } from './inspect.ts';
import { candidatePaths } from './sifpaths.ts';
import { ownEnvironment } from './start.ts';
import { FOLDERS, PROGRAMS } from './tools.ts';

const run = promisify(execFile);
const CONVERT_TIMEOUT_MS = 3_600_000;

export type ConvertDeps = {
  /** Path templates of the setting `apptainer_images`. Conversions use the first template. */
  templates: readonly string[];
  /** Program of the setting `apptainer_command`; null: search for apptainer or singularity. */
  command: string | null;
  /** Folder where images are unpacked during a conversion. The folder needs space for `atOnce` images. */
  folder: string;
  atOnce: number;
  /** Makes an image ready on an engine and returns the engine's socket. Throws RolloutFailure, UnusableError. */
  ensure(image: string): Promise<string>;
  signal: AbortSignal;
};

/** Throws UsageError if the first template has no placeholder, UnusableError if Apptainer is missing or does not run. */
export async function openConverter(deps: ConvertDeps): Promise<Converter> {
  const [template] = deps.templates;
  if (!template || !/\{(image|instance_id)\}/.test(template)) {
    throw new UsageError(
      'convert: set apptainer_images to a path with {image}, such as /shared/sif/{image}.sif',
    );
  }
  return new Converter(deps, template, await requireProgram(deps.command));
}

export class Converter {
  readonly #deps: ConvertDeps;
  readonly #template: string;
  readonly #program: string;
  readonly #slots: Semaphore;
  readonly #inspection: ImageInspection;
  readonly #images = new Map<string, string>();

  constructor(deps: ConvertDeps, template: string, program: string) {
    this.#deps = deps;
    this.#template = template;
    this.#program = program;
    this.#slots = createSemaphore(deps.atOnce);
    this.#inspection = inspectSifFiles([template]);
  }

  /** Converts an image unless its file exists. Throws RolloutFailure image_pull / node_disk. */
  async convert(image: string): Promise<ImageLine> {
    const [path = ''] = candidatePaths([this.#template], image, undefined);
    const other = this.#images.get(path);
    if (other)
      throw new RolloutFailure('image_pull', `${path} is ${other}'s already: convert them to two folders`);
    this.#images.set(path, image);
    const found = await this.#inspection.look(image, false, []);
    return found.status === 'absent' ? await this.#slots.run(() => this.#make(image, path)) : found;
  }

  async #make(image: string, path: string): Promise<ImageLine> {
    const { signal } = this.#deps;
    await mkdir(dirname(path), { recursive: true });
    const make = async (): Promise<ImageLine> => {
      await removePartials(path);
      // Another process may have converted the image during the wait for the lock.
      const found = await this.#inspection.look(image, false, []);
      if (found.status !== 'absent') return found;
      const partial = `${path}.${temporaryName()}.partial`;
      try {
        await this.#build(image, partial);
        const [sha256, { size }] = await Promise.all([sha256Of(partial, signal), stat(partial)]);
        const converted_at = new Date().toISOString();
        await writeOrigin(path, { image, sha256, bytes: size, converted_at });
        await rename(partial, path);
        return { image, status: 'converted', path, bytes: size, digest: `sha256:${sha256}` };
      } finally {
        await rm(partial, { force: true });
      }
    };
    return await withLock(`${path}.lock`, make, signal);
  }

  async #build(image: string, partial: string): Promise<void> {
    const { signal } = this.#deps;
    // `apptainer build` reads archives without an engine.
    const isArchive = /^(docker-archive|oci):\//.test(image);
    const source = isArchive
      ? [partial, image]
      : [
          '--docker-host',
          `unix://${await this.#deps.ensure(image)}`,
          partial,
          `docker-daemon:${withTag(image)}`,
        ];
    await using folder = await openTemporaryFolder(this.#deps.folder);
    const options = { timeout: CONVERT_TIMEOUT_MS, signal, env: ownEnvironment(folder.path) };
    await run(this.#program, ['--silent', 'build', '--disable-cache', ...source], options).catch(
      (error: unknown) => {
        signal.throwIfAborted();
        throw buildFailure(error, image);
      },
    );
    const file = await open(partial);
    await file.sync().finally(() => file.close());
  }
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
