/**
 * Runs commands on the host, for dry runs: as children of the worker, in a copy of a folder, without isolation and limits. The results
 * have no reward unless the run requests one.
 */
import { execFile } from 'node:child_process';
import { lstat, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { errorMessage, isOurs, newId, ownFolder, RolloutFailure } from '@swefarm/shared';
import { diskFree } from '../disk.ts';
import type {
  ContainerSpec,
  OwnedContainer,
  Owner,
  ReadyImage,
  Runtime,
  RuntimeCheck,
  RuntimeLog,
} from '../runtime.ts';
import { SCRATCH } from '../scratch.ts';
import { HostContainer } from './container.ts';
import { killMarked } from './processes.ts';

const run = promisify(execFile);
const PREFIX = 'host-';
const COPY_TIMEOUT_MS = 300_000;

export type HostRuntimeOptions = {
  /** Folder of the copies; created if missing. */
  scratchDir: string;
  log?: RuntimeLog;
};

/** Images are `dir:PATH` (a work tree, or a root that contains the work tree). Any other name is an empty folder. */
export async function hostRuntime(options: HostRuntimeOptions): Promise<Runtime> {
  const { scratchDir } = options;

  const remove = async (id: string): Promise<void> => {
    if (!/^host-[0-9a-z]+$/.test(id)) return;
    const folder = join(scratchDir, id);
    await killMarked(id, folder);
    await removeTree(folder);
  };

  return {
    name: 'host',
    isolates: false,
    placesByImage: false,
    check: () => check(scratchDir),
    ensureImage,
    start: async (spec, signal) => {
      signal.throwIfAborted();
      const id = PREFIX + newId();
      const folder = join(scratchDir, id);
      try {
        await ownFolder(scratchDir, SCRATCH);
        await mkdir(folder, { mode: 0o700 });
        await mkdir(join(folder, 'tmp'));
        await writeFile(
          join(folder, 'owner.json'),
          JSON.stringify({ owner: spec.owner, started_at: Date.now() }),
        );
        await copyTree(spec, join(folder, 'work'), signal);
      } catch (error) {
        await removeTree(folder);
        signal.throwIfAborted();
        throw startFailure(error);
      }
      return new HostContainer(id, spec, folder, () =>
        remove(id).catch((error: unknown) => {
          options.log?.warn({ container: id, error: errorMessage(error) }, 'folder left for the reaper');
        }),
      );
    },
    listOwned: () => listOwned(scratchDir),
    diskFree: () => diskFree(scratchDir),
    remove,
    [Symbol.asyncDispose]: async () => undefined,
  };
}

async function check(scratchDir: string): Promise<RuntimeCheck> {
  const problems = [
    'NO ISOLATION: commands of the model run on this machine as this user, with its files and network; a dry run only, use docker or rootfs for anything else',
  ];
  const limits = { cpu: 'none', memory: 'none', pids: 'none', disk: 'none' } as const;
  try {
    await ownFolder(scratchDir, SCRATCH);
    const { stdout } = await run('bash', ['--version']);
    return { usable: true, version: stdout.split('\n')[0] ?? null, limits, problems };
  } catch (error) {
    problems.push(`bash or the folder ${scratchDir} cannot be used: ${errorMessage(error)}`);
    return { usable: false, version: null, limits, problems };
  }
}

async function ensureImage(image: string): Promise<ReadyImage> {
  if (!image.startsWith('dir:')) return { name: image, digest: 'host', ref: '' };
  const path = image.slice('dir:'.length);
  const found = await stat(path).catch(() => null);
  if (!found?.isDirectory()) throw new RolloutFailure('image_not_found', `there is no folder ${path}`);
  return { name: image, digest: `host:${path}`, ref: path };
}

async function copyTree(spec: ContainerSpec, target: string, signal: AbortSignal): Promise<void> {
  await mkdir(target, { recursive: true });
  if (!spec.image.ref) return;
  const inside = join(spec.image.ref, spec.workdir);
  const source = await stat(inside).then(
    () => inside,
    () => spec.image.ref,
  );
  const limit = AbortSignal.any([signal, AbortSignal.timeout(COPY_TIMEOUT_MS)]);
  await run('cp', ['-a', '--reflink=auto', `${source}/.`, target], { signal: limit });
}

function startFailure(error: unknown): RolloutFailure {
  const message = errorMessage(error);
  const full = /ENOSPC|EDQUOT|no space left/i.test(message);
  return new RolloutFailure(
    full ? 'node_disk' : 'sandbox_start',
    `copying the tree: ${message}`.slice(0, 400),
    {
      cause: error,
    },
  );
}

async function listOwned(scratchDir: string): Promise<OwnedContainer[]> {
  const names = await readdir(scratchDir).catch(() => []);
  const owned: OwnedContainer[] = [];
  for (const id of names.filter((name) => name.startsWith(PREFIX))) {
    const found = await lstat(join(scratchDir, id)).catch(() => null);
    if (!found?.isDirectory() || !isOurs(found)) continue;
    const text = await readFile(join(scratchDir, id, 'owner.json'), 'utf8').catch(() => null);
    if (text === null) continue;
    const record = readOwner(text);
    if (record) owned.push({ id, owner: record.owner });
  }
  return owned;
}

/** Returns null if a power cut truncated the file. */
function readOwner(text: string): { owner: Owner; started_at: number } | null {
  try {
    return JSON.parse(text) as { owner: Owner; started_at: number };
  } catch {
    return null;
  }
}

/** Removes a folder, even if the model's code made files unreadable or its ending processes still write there. */
async function removeTree(folder: string): Promise<void> {
  const attempt = () => rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  try {
    await attempt();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error;
    await run('chmod', ['-R', 'u+rwx', folder]);
    await attempt();
  }
}
