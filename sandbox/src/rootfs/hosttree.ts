/**
 * Makes the host's system the lowest layer of a sandbox, for nodes without engine and images. The layer shows only the system folders,
 * and a small copy of /etc without keys, accounts of people and mount tables.
 */

import { createHash } from 'node:crypto';
import { lstatSync, readlinkSync } from 'node:fs';
import { chmod, cp, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { EMPTY_CONFIG } from '../images/config.ts';
import type { ImageStore } from '../images/store.ts';

/** Entries of the host's root. Folders are mounted from the host; links (/bin → usr/bin) are recreated. */
const SYSTEM = ['usr', 'bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32'];
const ETC = [
  'alternatives',
  'bash.bashrc',
  'ca-certificates',
  'ca-certificates.conf',
  'debian_version',
  'gai.conf',
  'host.conf',
  'inputrc',
  'ld.so.cache',
  'ld.so.conf',
  'ld.so.conf.d',
  'locale.alias',
  'locale.conf',
  'localtime',
  'login.defs',
  'magic',
  'magic.mime',
  'mime.types',
  'nsswitch.conf',
  'os-release',
  'pki/ca-trust/extracted',
  'pki/tls/cert.pem',
  'pki/tls/certs',
  'profile',
  'protocols',
  'redhat-release',
  'rpc',
  'services',
  'shells',
  'ssl/certs',
  'ssl/openssl.cnf',
  'terminfo',
  'timezone',
];
/** Folders with the configuration that Debian's JDKs need to start. */
const ETC_JAVA = /^java-\d+-openjdk$/;
const FOLDERS: readonly [path: string, mode: number][] = [
  ['home', 0o755],
  ['mnt', 0o755],
  ['opt', 0o755],
  ['root', 0o700],
  ['run', 0o755],
  ['srv', 0o755],
  ['var/cache', 0o755],
  ['var/lib', 0o755],
  ['var/log', 0o755],
  ['var/tmp', 0o1777],
];
const NOBODY = 65534;
const FIRST_USER = 1000;
/** Version of the rules above. Increase this number when the rules change, so that old trees are not used. */
const VERSION = 2;

/**
 * Makes the lowest layer once for each state of the host's /etc. The store treats the layer like an image. `folders`: folders of the
 * host's root that are mounted above `tree`.
 */
export async function hostTree(store: ImageStore, signal?: AbortSignal) {
  const folders = SYSTEM.filter((name) => lstatSync(`/${name}`, { throwIfNoEntry: false })?.isDirectory());
  const etc = [...ETC, ...(await readdir('/etc')).filter((name) => ETC_JAVA.test(name))];
  const state = createHash('sha256').update(`${VERSION} ${folders}`);
  for (const name of ['passwd', 'group', ...etc]) {
    const found = await stat(join('/etc', name)).catch(() => null);
    state.update(`${name} ${found?.size} ${found?.mtimeMs}\n`);
  }
  const digest = `sha256:${state.digest('hex')}`;
  const unpack = async (partial: string) => {
    await build(join(partial, 'tree'), etc);
    return { digest, config: EMPTY_CONFIG, bytes: 0 };
  };
  const { tree } = (await store.find(digest)) ?? (await store.ensure(digest, unpack, signal));
  return { tree, folders };
}

async function build(tree: string, etc: readonly string[]): Promise<void> {
  for (const name of SYSTEM) {
    const found = lstatSync(`/${name}`, { throwIfNoEntry: false });
    if (found?.isSymbolicLink()) await symlink(readlinkSync(`/${name}`), join(tree, name));
    else if (found?.isDirectory()) await mkdir(join(tree, name));
  }
  for (const [path, mode] of FOLDERS) {
    await mkdir(join(tree, path), { recursive: true });
    await chmod(join(tree, path), mode);
  }
  await symlink('/run', join(tree, 'var/run'));
  for (const name of etc) {
    const target = join(tree, 'etc', name);
    await mkdir(dirname(target), { recursive: true });
    await cp(join('/etc', name), target, {
      recursive: true,
      verbatimSymlinks: true,
      preserveTimestamps: true,
      errorOnExist: false,
      filter: readable,
    }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
  }
  for (const name of ['passwd', 'group'] as const)
    await writeFile(join(tree, 'etc', name), await systemAccounts(name));
}

/** Selects the files to copy: readable by all users, or owned by a worker without root. */
async function readable(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => null);
  if (!found) return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  if (process.getuid?.() === 0) return (found.mode & 0o004) !== 0;
  return (found.mode & 0o004) !== 0 || found.uid === process.getuid?.();
}

/** Returns the lines of the system's accounts, without accounts of people. */
async function systemAccounts(name: 'passwd' | 'group'): Promise<string> {
  const lines = (await readFile(`/etc/${name}`, 'utf8')).split('\n').filter((line) => {
    const id = Number(line.split(':')[2]);
    return line.startsWith('root:') || (Number.isInteger(id) && (id < FIRST_USER || id === NOBODY) && id > 0);
  });
  const shown = lines.map((line) => {
    // Members of groups are not shown.
    if (name === 'group') return `${line.split(':').slice(0, 3).join(':')}:`;
    return line.startsWith('root:') ? 'root:x:0:0:root:/root:/bin/bash' : line;
  });
  return `${shown.join('\n')}\n`;
}
