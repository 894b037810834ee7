/**
 * Provides bubblewrap and bash in a sandbox, because the image's own programs may not work. One folder contains both programs with this
 * host's libraries and loader. The folder is mounted read-only and hidden from the code inside.
 */
import { copyFile, mkdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { run } from '../run.ts';

export const PROGRAMS = ['apptainer', 'singularity'] as const;
export const FOLDERS = ['/usr/local/bin', '/usr/bin', '/bin', '/opt/apptainer/bin', '/opt/singularity/bin'];
export const TOOLS_AT = '/.swefarm';
const LOADER = 'ld.so';

/** Copies programs into `folder`; {@link toolLine} starts them. Throws for a program that is not linked to glibc. */
export async function gatherTools(folder: string, programs: readonly string[]): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o755 });
  const copies = new Map<string, string>();
  for (const program of programs) {
    const { loader, libraries } = await linkedWith(program);
    copies.set(LOADER, loader);
    for (const path of [program, ...libraries]) copies.set(basename(path), path);
  }
  await Promise.all([...copies].map(([name, path]) => copyFile(path, join(folder, name))));
}

/** Makes a tree that contains only a program and its libraries, for a trial of the runtime. */
export async function bareTree(tree: string, program: string): Promise<void> {
  const { loader, libraries } = await linkedWith(program);
  for (const path of [program, loader, ...libraries]) {
    await mkdir(join(tree, dirname(path)), { recursive: true });
    await copyFile(path, join(tree, path));
  }
  for (const name of ['dev', 'proc', 'sys', 'tmp', 'etc', 'root', 'var/tmp']) {
    await mkdir(join(tree, name), { recursive: true });
  }
}

export const toolLine = (name: string): string[] => [
  `${TOOLS_AT}/${LOADER}`,
  '--library-path',
  TOOLS_AT,
  `${TOOLS_AT}/${name}`,
];

async function linkedWith(program: string): Promise<{ loader: string; libraries: string[] }> {
  const { stdout } = await run('ldd', [program], { env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' } });
  const paths = [...stdout.matchAll(/^\s*(?:\S+ => )?(\/\S+) \(0x/gm)].map(([, path]) => path as string);
  const loader = paths.find((path) => basename(path).startsWith('ld-linux'));
  if (!loader)
    throw new Error(`${program} is not linked as glibc programs are: ${stdout.trim().slice(0, 200)}`);
  return { loader, libraries: paths.filter((path) => path !== loader) };
}
