/** Finds the programs that the rootfs and Apptainer runtimes need, and what this process has inherited. */
import { access, chmod, constants, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ContainerSpec } from '../runtime.ts';
import { HOST_NAME } from './bubblewrap.ts';

const FOLDERS = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
const PROGRAMS: Record<string, string> = {
  bwrap: 'bubblewrap',
  unshare: 'util-linux',
  nsenter: 'util-linux',
  mount: 'mount',
  bash: 'bash',
  sh: 'dash',
  mkfifo: 'coreutils',
  rm: 'coreutils',
};
const HOSTS = `127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n127.0.1.1\t${HOST_NAME}\n`;

/** Returns the paths of the programs, and a problem that names the packages of missing ones. */
export async function findPrograms(): Promise<{ paths: Record<string, string>; problems: string[] }> {
  const paths: Record<string, string> = {};
  for (const name of Object.keys(PROGRAMS)) {
    const found = await findProgram([name], FOLDERS);
    if (found) paths[name] = found;
  }
  const missing = new Set(Object.keys(PROGRAMS).flatMap((name) => (paths[name] ? [] : PROGRAMS[name])));
  if (missing.size === 0) return { paths, problems: [] };
  const packages = [...missing].join(' ');
  const problem = `programs are missing on this node: apt-get install -y ${packages} (or the same packages elsewhere)`;
  return { paths, problems: [problem] };
}

/** Returns the path of the first program that is in one of the folders; null if none is. */
export async function findProgram(
  names: readonly string[],
  folders: readonly string[],
): Promise<string | null> {
  for (const path of names.flatMap((name) => folders.map((folder) => join(folder, name)))) {
    const usable = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (usable) return path;
  }
  return null;
}

/** Makes the overlay layers above every image, by kind of network. @param folder folder of this runtime */
export async function makeBase(folder: string): Promise<Record<ContainerSpec['network'], string>> {
  const resolv = await readFile('/etc/resolv.conf', 'utf8').catch(() => '');
  const make = async (name: string, nameservers: string): Promise<string> => {
    const base = join(folder, name);
    for (const path of ['dev', 'proc', 'sys/fs/cgroup', 'etc', 'tmp'])
      await mkdir(join(base, path), { recursive: true });
    await chmod(join(base, 'tmp'), 0o1777);
    await writeFile(join(base, 'etc/hosts'), HOSTS);
    await writeFile(join(base, 'etc/hostname'), `${HOST_NAME}\n`);
    await writeFile(join(base, 'etc/resolv.conf'), nameservers);
    return base;
  };
  return { none: await make('base-none', ''), egress: await make('base-egress', resolv) };
}

const CLOSE_ON_EXEC = 0o2000000;

/** Finds the file descriptors that this process inherited and would pass to its children. A sandbox must not get them. */
export async function inheritedFiles(): Promise<number[]> {
  const found: number[] = [];
  for (const name of await readdir('/proc/self/fdinfo')) {
    const fd = Number(name);
    if (fd <= 2) continue;
    const text = await readFile(`/proc/self/fdinfo/${fd}`, 'latin1').catch(() => '');
    const flags = /^flags:\s+(\d+)$/m.exec(text)?.[1];
    if (flags && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0) found.push(fd);
  }
  return found;
}

/** Returns whether this process is in another user namespace than the initial one, which maps every user to itself. */
export async function isInUserNamespace(): Promise<boolean> {
  const map = await readFile('/proc/self/uid_map', 'latin1').catch(() => '');
  return map !== '' && !/^\s*0\s+0\s+4294967295\s*$/.test(map);
}
