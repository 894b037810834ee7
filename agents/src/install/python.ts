/**
 * Builds a bundle with a Python of its own: interpreter and C library from packages of Debian, agents from wheels. Nothing of the image and
 * no Python of this machine is used, and nothing is compiled from C.
 */
import { cp, glob, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { SwefarmError, UsageError } from '@swefarm/shared';
import { digestOf } from '../store/contents.ts';
import type { BuildContext } from './builder.ts';
import { debianSources, unpackDebian } from './debian.ts';
import { addLibraries, LOADER } from './libraries.ts';
import type { PythonLock } from './pythonlock.ts';
import { runProgram } from './run.ts';

/** Parts of the standard library that agents do not use. */
const STANDARD_WITHOUT = [
  'EXTERNALLY-MANAGED',
  'ensurepip',
  'idlelib',
  'sitecustomize.py',
  'test',
  'turtledemo',
];
/** Where the Python of Debian looks for packages, below its prefix. */
export const PACKAGES = 'lib/python3/dist-packages';
/** Traces of pip, which name paths of this machine. */
const TRACES = ['bin', '*.dist-info/{RECORD,INSTALLER,REQUESTED,direct_url.json}', '**/__pycache__'];
/** Folder of shared libraries in unpacked Debian packages. */
export const LIBRARIES = 'usr/lib/x86_64-linux-gnu';

/**
 * Writes the bundle into an empty folder.
 *
 * @throws UsageError for a source that differs from the lock; UnusableError for the mirror; SwefarmError build_step, bundle_incomplete; the
 * reason of the signal
 */
export async function buildPython(lock: PythonLock, folder: string, context: BuildContext): Promise<void> {
  const { mount, signal, log } = context;
  // The name begins as that of the folder, so what a killed installer leaves is swept with the folder.
  const root = await mkdtemp(join(dirname(folder), `${basename(folder)}-`));
  try {
    log(`fetching ${lock.debian.length} Debian packages`);
    await unpackDebian(lock.debian, root, await debianSources(lock.snapshot), signal);
    await copyStandard(lock, root, folder);
    const python = debianPython(root, lock.python);
    log(`installing ${lock.wheels.length} Python packages`);
    await installWheels(lock, join(folder, PACKAGES), root, (args) =>
      runProgram(...python(args), { signal }),
    );
    await removeAll(join(folder, PACKAGES), [...TRACES, ...lock.drop]);
    await copySource(lock, folder, context);
    const programs = await copyPrograms(lock, root, folder);
    await addLibraries({ folder, mount, libraries: join(root, LIBRARIES), signal }, programs);
    log('compiling byte code');
    await compile(folder, mount, python, signal);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

export type RunPython = (args: readonly string[]) => [program: string, args: string[]];

/** Returns the command of the unpacked interpreter, which the loader beside it starts. */
export function debianPython(root: string, version: string): RunPython {
  const libraries = join(root, LIBRARIES);
  const program = join(root, `usr/bin/python${version}`);
  return (args) => [join(libraries, LOADER), ['--library-path', libraries, program, ...args]];
}

/** Returns the command of pip in the unpacked packages. `-I`: no variable of this machine changes the interpreter. */
export async function pipOf(root: string): Promise<string[]> {
  for await (const wheel of glob('usr/share/python-wheels/pip-*.whl', { cwd: root })) {
    return ['-I', join(root, wheel, 'pip')];
  }
  throw new SwefarmError('build_step', 'the lock has no Debian package with pip (python3-pip-whl)');
}

async function copyStandard({ python }: PythonLock, root: string, folder: string): Promise<void> {
  const standard = `lib/python${python}`;
  await mkdir(join(folder, 'bin'), { recursive: true });
  await cp(join(root, 'usr', standard), join(folder, standard), {
    recursive: true,
    verbatimSymlinks: true,
    filter: (path) => !STANDARD_WITHOUT.includes(path.slice(join(root, 'usr', standard).length + 1)),
  });
  await cp(join(root, `usr/bin/python${python}`), join(folder, `bin/python${python}`));
  await symlink(`python${python}`, join(folder, 'bin/python3'));
}

async function installWheels(
  { wheels }: PythonLock,
  target: string,
  root: string,
  run: (args: string[]) => Promise<string>,
): Promise<void> {
  const requirements = join(root, 'requirements.txt');
  const lines = wheels.map(({ name, version, sha256 }) => `${name}==${version} --hash=sha256:${sha256}\n`);
  await writeFile(requirements, lines.join(''));
  const fixed = [
    '--no-deps',
    '--require-hashes',
    '--only-binary',
    ':all:',
    '--no-compile',
    '--target',
    target,
  ];
  const quiet = ['--quiet', '--disable-pip-version-check', '--no-warn-script-location', '--no-input'];
  await run([...(await pipOf(root)), 'install', ...quiet, ...fixed, '--requirement', requirements]);
}

async function removeAll(folder: string, patterns: readonly string[]): Promise<void> {
  for (const pattern of patterns) {
    const found = await Array.fromAsync(glob(pattern, { cwd: folder }));
    await Promise.all(found.map((path) => rm(join(folder, path), { recursive: true, force: true })));
  }
}

async function copyPrograms({ python, programs, data }: PythonLock, root: string, folder: string) {
  for (const path of data) {
    await cp(join(root, path), join(folder, path.replace(/^usr\//, '')), { recursive: true });
  }
  const copied = programs.map((path) => `programs/${basename(path)}`);
  for (const [index, path] of programs.entries())
    await cp(join(root, path), join(folder, copied[index] ?? ''));
  return [`bin/python${python}`, ...copied];
}

async function copySource(lock: PythonLock, folder: string, context: BuildContext): Promise<void> {
  if (!lock.source) return;
  const { folders, revision, sha256 } = lock.source;
  const checkout = requireSource(context.source);
  const target = join(folder, 'src');
  await copyFolders(checkout, folders, target);
  const { digest } = await digestOf(target, context.signal);
  if (digest === sha256) return;
  throw new UsageError(
    `${checkout} has not the files of revision ${revision}: their digest is ${digest}, that of the lock ${sha256}; check the revision out, or make a lock of these files`,
  );
}

/** Throws UsageError if no checkout was given. */
export function requireSource(source: string | null): string {
  if (source !== null) return source;
  throw new UsageError('this agent is on no registry: give a checkout of its repository (--source FOLDER)');
}

/** Copies the folders of a checkout without byte code. */
export async function copyFolders(source: string, folders: readonly string[], target: string): Promise<void> {
  for (const name of folders) {
    await cp(join(source, name), join(target, name), {
      recursive: true,
      verbatimSymlinks: true,
      filter: (path) => basename(path) !== '__pycache__' && !path.endsWith('.pyc'),
    });
  }
}

const COMPILE = `
import compileall, py_compile, sys
unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
compileall.compile_dir(sys.argv[1], quiet=2, force=True, stripdir=sys.argv[1], prependdir=sys.argv[2], invalidation_mode=unchecked)
`;

/**
 * Compiles all modules. Byte code with unchecked hashes is valid wherever and whenever the files were written. One process with a fixed
 * hash seed writes the same bytes each time. A module that does not compile (a template, Python 2) is left as it is.
 */
async function compile(folder: string, mount: string, python: RunPython, signal: AbortSignal): Promise<void> {
  const env = { PYTHONHASHSEED: '0', PYTHONDONTWRITEBYTECODE: '1', PYTHONPATH: '', PYTHONHOME: '' };
  const [program, args] = python(['-s', '-W', 'ignore', '-c', COMPILE, folder, mount]);
  await runProgram(program, args, { signal, env });
}
