/**
 * Runs commands on the host, for dry runs: as children of the worker, in a copy of a folder, without isolation and limits. The results
 * have no reward unless the run requests one.
 */
import { mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { errorMessage, ownFolder, RolloutFailure } from '@swefarm/shared';
import { diskFree } from '../disk.ts';
import { refused, requireMounts } from '../mounts.ts';
import { newSandboxId, readRecords, writeRecord } from '../namespaces/records.ts';
import { run } from '../run.ts';
import type { ContainerSpec, ReadyImage, Runtime, RuntimeCheck, RuntimeLog } from '../runtime.ts';
import { SCRATCH } from '../scratch.ts';
import { HostContainer, killMarked } from './container.ts';

const COPY_TIMEOUT_MS = 300_000;

/**
 * Images are `dir:PATH` (a work tree, or a root that contains the work tree). Any other name is an empty folder.
 * @param options `scratchDir`: folder of the copies; created if missing
 */
export async function hostRuntime(options: { scratchDir: string; log?: RuntimeLog }): Promise<Runtime> {
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
      await requireMounts(spec);
      requireSamePaths(spec);
      const id = newSandboxId('host');
      const folder = join(scratchDir, id);
      try {
        await ownFolder(scratchDir, SCRATCH);
        await writeRecord(folder, { owner: spec.owner, cgroups: [] }, [join(folder, 'tmp')]);
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
    listOwned: () => readRecords(scratchDir, 'host').catch(() => []),
    diskFree: () => diskFree(scratchDir),
    remove,
    [Symbol.asyncDispose]: async () => undefined,
  };
}

/** Throws RolloutFailure `sandbox_refused` for a mount: this runtime has no mounts, so a folder appears only at its own path. */
function requireSamePaths({ mounts = [] }: ContainerSpec): void {
  const moved = mounts.find(({ source, target }) => source !== target);
  if (moved) throw refused(`${moved.source} cannot be at ${moved.target} in a dry run without isolation`);
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
  const message = `copying the tree: ${errorMessage(error)}`;
  const full = /ENOSPC|EDQUOT|no space left/i.test(message);
  return new RolloutFailure(full ? 'node_disk' : 'sandbox_start', message.slice(0, 400), { cause: error });
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
