/**
 * Gives a bundle the shared libraries of its programs and modules, the C library too, so that no file of an image is loaded. Programs find
 * the libraries by DT_RPATH, which holds for the modules that they load later.
 */
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { SwefarmError } from '@swefarm/shared';
import { type Elf, readElf, relink } from './elf.ts';

/** Folder of the libraries in a bundle, and the loader in it. */
export const SYSTEM = 'lib/system';
export const LOADER = 'ld-linux-x86-64.so.2';
/** Wheels take these from the system. Every program loads them first, because a module with DT_RUNPATH ignores the DT_RPATH. */
const PRELOADED = ['libstdc++.so.6', 'libgcc_s.so.1'];

export type Build = {
  /** The folder that is built, and its path in the sandbox. */
  folder: string;
  mount: string;
  /** The folder of the distribution with its shared libraries. */
  libraries: string;
  signal: AbortSignal;
};

type Found = { path: string; elf: Elf };

/**
 * Copies the libraries and relinks `programs`, the first of which loads the modules.
 *
 * @param programs paths below the folder
 * @throws SwefarmError bundle_incomplete with the libraries that neither the bundle nor the distribution has
 */
export async function addLibraries(build: Build, programs: readonly string[]): Promise<void> {
  const { folder, mount, signal } = build;
  await mkdir(join(folder, SYSTEM), { recursive: true });
  const rpath = [`${mount}/${SYSTEM}`];
  for (const [index, program] of programs.entries()) {
    const path = join(folder, program);
    const needed = index === 0 ? PRELOADED : [];
    const links = { interpreter: `${mount}/${SYSTEM}/${LOADER}`, rpath, needed };
    await writeFile(path, relink(await readFile(path), links), { mode: 0o755 });
  }
  const [interpreter = ''] = programs;
  const system = new System(build);
  await system.add(LOADER);
  const loaded = await system.closureOf(await elfAt(join(folder, interpreter)));
  for (const program of programs.slice(1)) await system.closureOf(await elfAt(join(folder, program)));
  const modules = await modulesIn(folder, signal);
  for (const module of modules) {
    const missing = await system.serve(module, modules);
    if (module.elf.runpath.length === 0 || missing.every((name) => loaded.has(name))) continue;
    const paths = [...module.elf.runpath, ...rpath];
    const bytes = await readFile(module.path);
    await writeFile(module.path, relink(bytes, { interpreter: null, rpath: paths }));
  }
  system.requireAll();
}

async function elfAt(path: string): Promise<Elf> {
  const elf = readElf(await readFile(path));
  if (elf) return elf;
  throw new SwefarmError('elf_unreadable', `${path} is no dynamically linked program`);
}

/** Returns the shared libraries below a folder, without those of the distribution. */
async function modulesIn(folder: string, signal: AbortSignal): Promise<Found[]> {
  const names = await readdir(folder, { recursive: true });
  const found: Found[] = [];
  for (const name of names.filter((name) => /\.so(\.|$)/.test(basename(name))).sort()) {
    signal.throwIfAborted();
    if (name.startsWith(`${SYSTEM}/`)) continue;
    const path = join(folder, name);
    const elf = readElf(await readFile(path));
    if (elf) found.push({ path, elf });
  }
  return found;
}

/** The libraries of the distribution, which are copied on demand. */
class System {
  readonly #build: Build;
  readonly #copied = new Map<string, Elf | null>();
  readonly #missing = new Set<string>();

  constructor(build: Build) {
    this.#build = build;
  }

  /** Copies one library with its libraries. Returns whether the distribution has it. */
  async add(name: string): Promise<boolean> {
    if (this.#copied.has(name)) return true;
    const from = join(this.#build.libraries, basename(name));
    const to = join(this.#build.folder, SYSTEM, basename(name));
    try {
      await copyFile(from, to);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      return false;
    }
    const elf = readElf(await readFile(to));
    this.#copied.set(name, elf);
    for (const next of elf?.needed ?? []) await this.#require(next, to);
    return true;
  }

  async #require(name: string, by: string): Promise<void> {
    if (!(await this.add(name))) this.#missing.add(`${name} (for ${basename(by)})`);
  }

  /** Copies the libraries of a program and returns the names of all that it loads. */
  async closureOf({ needed }: Elf): Promise<Set<string>> {
    const names = new Set<string>();
    const waiting = [...needed];
    for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
      if (names.has(name)) continue;
      names.add(name);
      await this.#require(name, 'a program');
      waiting.push(...(this.#copied.get(name)?.needed ?? []));
    }
    return names;
  }

  /** Copies what a module needs and no module beside it is. Returns the names that the distribution provides. */
  async serve({ path, elf }: Found, modules: readonly Found[]): Promise<string[]> {
    const folders = [...elf.rpath, ...elf.runpath].map((folder) => {
      const expanded = folder.replace(/\$\{?ORIGIN\}?/, dirname(path));
      return join(expanded);
    });
    const near = new Set(
      modules.filter((one) => folders.includes(dirname(one.path))).map((one) => basename(one.path)),
    );
    const own = elf.needed.filter((name) => !near.has(name));
    for (const name of own) await this.#require(name, path);
    return own;
  }

  requireAll(): void {
    if (this.#missing.size === 0) return;
    const names = [...this.#missing].sort().join(', ');
    throw new SwefarmError(
      'bundle_incomplete',
      `the bundle lacks shared libraries: ${names}: add their Debian packages to the lock, or drop the modules`,
    );
  }
}
