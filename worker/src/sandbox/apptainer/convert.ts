/**
 * Engine or Docker archive → .sif, by `apptainer build`. A .sif that is there is whole: it is built under another name and
 * appears by one rename, after the file that says what it was made of. What a killed conversion left, the next one removes.
 */
import { execFile } from 'node:child_process';
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify, stripVTControlCharacters } from 'node:util';
import { createSemaphore, errorMessage, RolloutFailure, UnusableError, UsageError } from '@swefarm/shared';
import { withLock } from '../../images/lock.ts';
import { withTag } from '../../images/names.ts';
import { openTemporaryFolder, temporaryName } from '../../images/temporary.ts';
import { findProgram } from '../namespaces/host.ts';
import type { ImageLine } from '../runtime.ts';
import { inspectSifFiles } from './inspect.ts';
import { sha256Of, writeOrigin } from './origin.ts';
import { candidatePaths } from './sifpaths.ts';
import { ownEnvironment } from './start.ts';
import { FOLDERS, PROGRAMS } from './tools.ts';

const run = promisify(execFile);
const CONVERT_TIMEOUT_MS = 3_600_000;

export type ConvertDeps = {
  /** `apptainer_images`: files go to the first. */
  templates: readonly string[];
  /** Null: whichever name of Apptainer is found. */
  command: string | null;
  /** Images are unpacked here meanwhile: as much room as `atOnce` of them take. */
  folder: string;
  atOnce: number;
  /** Makes an image ready on an engine and answers with the engine's socket. Throws RolloutFailure, UnusableError. */
  ensure(image: string): Promise<string>;
  signal: AbortSignal;
};

/** Each image as a line; throws RolloutFailure. Throws UsageError without a place for the files, UnusableError without Apptainer. */
export async function openConverter(deps: ConvertDeps): Promise<(image: string) => Promise<ImageLine>> {
  const { templates, signal } = deps;
  const [template] = templates;
  if (!template || !/\{(image|instance_id)\}/.test(template)) {
    throw new UsageError(
      'convert: set apptainer_images to a path with {image}, such as /shared/sif/{image}.sif',
    );
  }
  const program = await requireProgram(deps.command);
  const slots = createSemaphore(deps.atOnce);
  const known = inspectSifFiles([template]);
  const takers = new Map<string, string>();

  const build = async (image: string, partial: string): Promise<void> => {
    // What `apptainer build` reads by itself needs no engine.
    const archive = /^(docker-archive|oci):\//.test(image);
    const from = archive
      ? [partial, image]
      : ['--docker-host', `unix://${await deps.ensure(image)}`, partial, `docker-daemon:${withTag(image)}`];
    await using folder = await openTemporaryFolder(deps.folder);
    const env = ownEnvironment(folder.path);
    await run(program, ['--silent', 'build', '--disable-cache', ...from], {
      ...{ timeout: CONVERT_TIMEOUT_MS, signal, env },
    }).catch((error: unknown) => {
      signal.throwIfAborted();
      throw buildFailure(error, image);
    });
    const file = await open(partial);
    await file.sync().finally(() => file.close());
  };

  const convert = async (image: string, path: string): Promise<ImageLine> => {
    await mkdir(dirname(path), { recursive: true });
    return await withLock(`${path}.lock`, signal, async () => {
      await removePartials(path);
      // Somebody else may have made it while we waited.
      const there = await known.look(image, false, []);
      if (there.status !== 'absent') return there;
      const partial = `${path}.${temporaryName()}.partial`;
      try {
        await build(image, partial);
        const [sha256, { size }] = await Promise.all([sha256Of(partial, signal), stat(partial)]);
        const converted_at = new Date().toISOString();
        await writeOrigin(path, { image, sha256, bytes: size, converted_at });
        await rename(partial, path);
        return { image, status: 'converted', path, bytes: size, digest: `sha256:${sha256}` };
      } finally {
        await rm(partial, { force: true });
      }
    });
  };

  return async (image) => {
    const [path = ''] = candidatePaths([template], image, undefined);
    const other = takers.get(path);
    if (other)
      throw new RolloutFailure('image_pull', `${path} is ${other}'s already: convert them to two folders`);
    takers.set(path, image);
    const there = await known.look(image, false, []);
    return there.status === 'absent' ? await slots.run(() => convert(image, path)) : there;
  };
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

/** Of conversions that were killed: whoever has the lock is alone. */
async function removePartials(path: string): Promise<void> {
  const start = `${basename(path)}.`;
  for (const name of await readdir(dirname(path))) {
    if (name.startsWith(start) && name.endsWith('.partial'))
      await rm(join(dirname(path), name), { force: true });
  }
}

/** The last of what Apptainer said, without its colours and its word for how bad it is. */
function buildFailure(error: unknown, image: string): RolloutFailure {
  const { stderr = '', killed } = error as { stderr?: string; killed?: boolean };
  const lines = stripVTControlCharacters(stderr)
    .split('\n')
    .filter((line) => line.trim() !== '');
  const said = killed
    ? 'not done within an hour'
    : (lines.at(-1) ?? errorMessage(error)).replace(/^[A-Z]+:\s+(While performing build: )?/, '');
  const full = /no space left|disk quota exceeded/i.test(stderr);
  return full
    ? new RolloutFailure(
        'node_disk',
        `converting ${image}: no space left: images_dir takes it unpacked, the folder of the .sif file takes that`,
      )
    : new RolloutFailure('image_pull', `converting ${image}: ${said}`.slice(0, 400));
}
