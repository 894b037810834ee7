/**
 * A small image of the host's own bash, coreutils, git and python3 with their libraries: the runtimes' tests need no more,
 * and it takes neither a registry nor a minute of debootstrap. Built once per content of the host's programs, then reused.
 */
import { createHash, randomUUID } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import {
  copyFile,
  cp,
  mkdir,
  readdir,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { run } from '../launchers/run.ts';

const COREUTILS =
  'base64 cat chmod chown cp cut date dd df dirname du basename echo env expr false head id ln ls mkdir mkfifo mktemp mv nl nohup nproc od printf pwd readlink realpath rm rmdir seq sha256sum sleep sort stat stty sync tail tee test timeout touch tr true truncate tty uname uniq wc whoami yes';
const OTHERS = 'sh grep sed awk find xargs ps setpriv setsid kill patch diff cmp tar gzip git python3';
const FOLDERS = 'usr/bin usr/lib usr/lib64 etc testbed tmp root proc sys dev run var/tmp';
const LINKS = { bin: 'usr/bin', sbin: 'usr/bin', lib: 'usr/lib', lib64: 'usr/lib64' };
/** Parts of Python's library that are omitted: no sandbox test imports them, and they would triple the image. */
const LEFT_OUT =
  /\/(test|tests|idlelib|lib2to3|ensurepip|tkinter|turtledemo|dist-packages|site-packages|__pycache__|config-[^/]*)$/;

export type MinimalImage = {
  /** Root of the unpacked tree. */
  tree: string;
  /** Changes when the content does. */
  version: string;
};

/**
 * @param options.bash false: an image with `sh` and no bash.
 * @param options.cacheDir where trees are stored; by default a folder in the system's temporary folder.
 */
export async function minimalImage(
  options: { bash?: boolean; cacheDir?: string } = {},
): Promise<MinimalImage> {
  const withBash = options.bash ?? true;
  const names = [...COREUTILS.split(' '), ...OTHERS.split(' '), ...(withBash ? ['bash'] : [])];
  const programs = new Map<string, string>();
  for (const name of names) {
    const found = await which(name);
    if (found) programs.set(name, found);
  }
  const version = await fingerprint(programs);
  const cacheDir = options.cacheDir ?? join(tmpdir(), `swefarm-images-${process.getuid?.() ?? 0}`);
  const tree = join(cacheDir, `minimal-${withBash ? 'bash' : 'sh'}-${version}`);
  if (existsSync(tree)) return { tree, version };
  const building = `${tree}.${process.pid}.${randomUUID()}`;
  await assemble(building, programs);
  // Two processes may build at once; the later one uses the tree of the first.
  await rename(building, tree).catch(() => rm(building, { recursive: true, force: true }));
  return { tree, version };
}

async function assemble(root: string, programs: Map<string, string>): Promise<void> {
  for (const dir of FOLDERS.split(' ')) await mkdir(join(root, dir), { recursive: true });
  for (const [link, target] of Object.entries(LINKS)) await symlink(target, join(root, link));
  // Destructive test cases run only where this file exists.
  await writeFile(join(root, 'swefarm-test-image'), '');
  await run('chmod', ['1777', join(root, 'tmp'), join(root, 'var/tmp')]);
  const libraries = new Set<string>();
  for (const [name, file] of programs) {
    await copyFile(file, join(root, 'usr/bin', name), constants.COPYFILE_FICLONE);
    for (const library of await librariesOf(file)) libraries.add(library);
  }
  const python = programs.get('python3');
  if (python) await copyPython(root, python, libraries);
  for (const library of libraries) {
    const target = join(root, library.startsWith('/usr/') ? library : `/usr${library}`);
    await mkdir(dirname(target), { recursive: true });
    await copyFile(library, target, constants.COPYFILE_FICLONE);
  }
  await writeFile(
    join(root, 'etc/passwd'),
    'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n',
  );
  await writeFile(join(root, 'etc/group'), 'root:x:0:\nnogroup:x:65534:\n');
}

async function copyPython(root: string, python: string, libraries: Set<string>): Promise<void> {
  const { stdout } = await run(python, ['-I', '-c', 'import os; print(os.path.dirname(os.__file__))']);
  const library = stdout.trim();
  const target = join(root, library.startsWith('/usr/') ? library : `/usr${library}`);
  await cp(library, target, { recursive: true, dereference: true, filter: (path) => !LEFT_OUT.test(path) });
  const modules = await readdir(join(library, 'lib-dynload')).catch(() => []);
  for (const module of modules) {
    for (const needed of await librariesOf(join(library, 'lib-dynload', module))) libraries.add(needed);
  }
}

/** Absolute paths of the shared libraries and the loader, as the loader itself resolves them. */
async function librariesOf(file: string): Promise<string[]> {
  const { stdout } = await run('ldd', [file]).catch(() => ({ stdout: '' }));
  return [...stdout.matchAll(/(?:=> )?(\/\S+) \(0x/g)].map((match) => match[1] as string);
}

async function which(name: string): Promise<string | null> {
  for (const dir of ['/usr/bin', '/bin', '/usr/sbin', '/sbin', '/usr/local/bin']) {
    if (existsSync(join(dir, name))) return realpath(join(dir, name));
  }
  return null;
}

async function fingerprint(programs: Map<string, string>): Promise<string> {
  const hash = createHash('sha256').update('5\n');
  for (const [name, file] of programs) {
    const { size, mtimeMs } = await stat(file);
    hash.update(`${name} ${file} ${size} ${Math.floor(mtimeMs)}\n`);
  }
  return hash.digest('hex').slice(0, 12);
}
