/**
 * Forms of image names in the Apptainer runtime:
 *   NAME[:TAG]           searched at the paths of `apptainer_images`, by the instance's id or by the name
 *   sif:/FILE, /FILE     a .sif file
 *   dir:/DIR, /DIR       an unpacked image, used in place and never written
 * A file `PATH.json` beside an image, in the format of `Config` of `docker inspect`, adds to the image's environment.
 */
import { hash } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { access, readFile, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createSingleFlight, errorMessage, RolloutFailure, type SingleFlight } from '@swefarm/shared';
import { configBeside, EMPTY_CONFIG, type ImageConfig } from '../images/config.ts';
import { type ImageStore, requireDisk, type Unpacked } from '../images/store.ts';
import { requireMountable } from '../namespaces/mounts.ts';
import { run } from '../run.ts';
import type { ReadyImage } from '../runtime.ts';
import { otherOrigin } from './origin.ts';
import { candidatePaths, isPath } from './sifpaths.ts';

const ENVIRONMENT = { PATH: '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C', HOME: '/' };
const UNPACK_TIMEOUT_MS = 3_600_000;
/** Approximate factor by which an image grows when it is unpacked from squashfs. */
const UNPACKED_GROWTH = 4;

export type ApptainerImage = { path: string; config: ImageConfig };

export type SifImageDeps = {
  templates: readonly string[];
  /** Store of unpacked images, for .sif files that cannot be mounted (no root, or neither loop devices nor FUSE). */
  store: ImageStore;
  command: readonly string[];
  /** Whether .sif files can be mounted. If not, each file is unpacked once. */
  mountable: boolean;
};

export class SifImages {
  readonly #deps: SifImageDeps;
  readonly #preparing: SingleFlight<ReadyImage> = createSingleFlight();
  readonly #ready = new Map<string, ApptainerImage>();

  constructor(deps: SifImageDeps) {
    this.#deps = deps;
  }

  /** Makes an image ready. Throws RolloutFailure image_not_found (lists the tried paths), image_pull or node_disk. */
  ensure(name: string, instanceId: string | undefined, signal: AbortSignal): Promise<ReadyImage> {
    return this.#preparing.run(`${name} ${instanceId ?? ''}`, () => this.#make(name, instanceId), signal);
  }

  /** Returns an image that `ensure` made ready. Throws RolloutFailure image_not_found. */
  find(image: ReadyImage): ApptainerImage {
    const found = this.#ready.get(image.ref);
    if (!found)
      throw new RolloutFailure('image_not_found', `image ${image.name} was not made ready by this runtime`);
    return found;
  }

  async #make(name: string, instanceId: string | undefined): Promise<ReadyImage> {
    const { templates, mountable } = this.#deps;
    const { existing, others } = await findSif(templates, name, instanceId);
    if (!existing) throw notFound(name, candidatePaths(templates, name, instanceId), others);
    const { path, found } = existing;
    const real = await realpath(path);
    requireMountable(real);
    const config = (await configBeside(path)) ?? EMPTY_CONFIG;
    const state = `${real} ${found.ino} ${found.size} ${found.mtimeMs} ${JSON.stringify(config)}`;
    const digest = `sha256:${hash('sha256', state)}`;
    const isUnpacked = found.isFile() && !mountable;
    const usable = isUnpacked ? await unpackedTree(this.#deps, real, digest, found.size) : real;
    this.#ready.set(digest, { path: usable, config });
    const { workdir } = config;
    return { name, digest, ref: digest, ...(workdir === '' ? {} : { workdir }) };
  }
}

function notFound(
  name: string,
  tried: readonly string[],
  others: readonly { path: string; image: string }[],
): RolloutFailure {
  const made = others.map(({ path, image }) => `${path} was made of ${image}; `).join('');
  const remedy =
    tried.length > 0
      ? `tried ${tried.join(', ')}`
      : 'set apptainer_images to where the .sif files are, e.g. /shared/sif/{instance_id}.sif';
  return new RolloutFailure(
    'image_not_found',
    `image ${name}: no .sif file or unpacked folder; ${made}${remedy}`,
  );
}

/**
 * Searches an image at the paths of `apptainer_images`. `others`: files that `swefarm images convert` made of other images, which the search
 * skips unless `name` is a path.
 */
export async function findSif(
  templates: readonly string[],
  name: string,
  instanceId: string | undefined,
): Promise<{ existing: { path: string; found: Stats } | null; others: { path: string; image: string }[] }> {
  const others: { path: string; image: string }[] = [];
  for (const path of candidatePaths(templates, name, instanceId)) {
    const found = await stat(path).catch(() => null);
    if (!found?.isFile() && !found?.isDirectory()) continue;
    const image = found.isFile() && !isPath(name) ? await otherOrigin(path, name) : null;
    if (image === null) return { existing: { path, found }, others };
    others.push({ path, image });
  }
  return { existing: null, others };
}

/** Returns the tree of a .sif file in this node's store; unpacks the file if needed. Throws RolloutFailure image_pull / node_disk. */
async function unpackedTree(
  { store, command }: SifImageDeps,
  path: string,
  digest: string,
  bytes: number,
): Promise<string> {
  const present = await store.find(digest);
  if (present) return present.tree;
  await requireDisk(store.root, bytes * UNPACKED_GROWTH);
  const unpack = async (partial: string): Promise<Unpacked> => {
    await unsquash(command, path, join(partial, 'tree')).catch((error: unknown) => {
      const message = `unpacking ${path}: ${errorMessage(error)}`;
      const failureClass = /no space left/i.test(message) ? 'node_disk' : 'image_pull';
      throw new RolloutFailure(failureClass, message.slice(0, 400), { cause: error });
    });
    return { digest, config: EMPTY_CONFIG, bytes };
  };
  return (await store.ensure(digest, unpack)).tree;
}

async function unsquash(command: readonly string[], path: string, tree: string): Promise<void> {
  const [program = '', ...line] = command;
  const { stdout } = await run(program, [...line, 'sif', 'list', path], { env: ENVIRONMENT });
  const offset = /(\d+)-\d+\s*\|FS \(Squashfs\/\*System/.exec(stdout)?.[1];
  if (!offset) throw new Error('there is no squashfs in it');
  const options = ['-quiet', '-no-progress', '-no-xattrs', '-force', '-offset', offset, '-dest', tree];
  await run('unsquashfs', [...options, path], { timeout: UNPACK_TIMEOUT_MS, env: ENVIRONMENT }).catch(
    allowMissingDevices,
  );
}

/** Ignores missing device nodes: only root can make them, and a sandbox has its own /dev. Throws unsquashfs's other errors. */
function allowMissingDevices(error: { code?: number | string; stderr?: string }): void {
  const complaints = (error.stderr ?? '').split('\n').filter((line) => line.trim() !== '');
  const others = complaints.filter(
    (line) => !/could not create (character|block) device .* because you're not superuser/.test(line),
  );
  // Exit code 2: unsquashfs finished, but skipped the files that its messages name.
  if (error.code === 2 && complaints.length > 0 && others.length === 0) return;
  throw new Error(others[0] ?? errorMessage(error), { cause: error });
}

/** Returns whether .sif files can be mounted. Without root, folders of a mounted file could not be renamed: see `mountTable`. */
export async function canMountSif(root: boolean): Promise<boolean> {
  if (!root) return false;
  const usable = (path: string): Promise<boolean> =>
    access(path, constants.R_OK | constants.W_OK).then(
      () => true,
      () => false,
    );
  return (await usable('/dev/loop-control')) || (await usable('/dev/fuse'));
}

/** Reads the image's environment from process 1, for which Apptainer's start scripts set it. */
export async function environmentOf(init: number): Promise<Record<string, string>> {
  const text = await readFile(`/proc/${init}/environ`, 'utf8').catch(() => '');
  const entries = text
    .split('\0')
    .map((entry): [string, string] => [entry.split('=', 1)[0] ?? '', entry.slice(entry.indexOf('=') + 1)])
    .filter(([name, value]) => name !== '' && !OWN.test(name) && value !== '/.singularity.d/libs');
  return Object.fromEntries(entries);
}
const OWN =
  /^(APPTAINER_|SINGULARITY_|PROMPT_COMMAND$|PS1$|PWD$|OLDPWD$|SHLVL$|TERM$|HOME$|USER_PATH$|LANG$|_$)/;
