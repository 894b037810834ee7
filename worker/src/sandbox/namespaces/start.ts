/** Makes one sandbox of the light runtime: overlays over an unpacked image, and bubblewrap as the keeper of its namespaces. */
import { readFileSync } from 'node:fs';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { resolveInside } from '../../images/inside.ts';
import {
  enterArguments,
  foldersOf,
  type Host,
  keeperArguments,
  layersOf,
  mountTable,
  placesOf,
} from '../rootfs/arguments.ts';
import { accountOf, type RootImage } from '../rootfs/images.ts';
import type { Container, ContainerSpec } from '../runtime.ts';
import { holdSandbox } from './hold.ts';
import { newSandboxId } from './records.ts';
import type { RuntimeSetup } from './setup.ts';
import { startSupervisor } from './supervisor.ts';

const script = (name: string): string => readFileSync(new URL(name, import.meta.url), 'utf8');
export const START = script('./start.sh');
export const INIT = script('./init.sh');
/** The kernel's memory killer takes everything else first. */
export const INIT_OOM_SCORE = '-900';

/** Throws RolloutFailure sandbox_start / node_disk / node_memory. */
export async function startSandbox(
  ground: RuntimeSetup,
  host: Host,
  spec: ContainerSpec,
  image: RootImage,
  signal: AbortSignal,
): Promise<Container> {
  signal.throwIfAborted();
  const id = newSandboxId('rootfs');
  const places = placesOf(join(ground.scratchDir, id));
  const plan = {
    // Without root there is nobody inside but user 0, who is whoever runs the worker.
    account: host.root ? accountOf(image) : { uid: 0, gid: 0, home: '/root' },
    folders: foldersOf(places, image, host),
    layers: layersOf(places, image, host),
    lay: async () => {
      await writeFile(places.table, mountTable(places, image, host, spec.network));
      await makeWorkdir(places.folder, image, spec.workdir);
    },
    keep: (cgroup: { joins: { other: string[] } } | null) =>
      startSupervisor(
        [
          ...unshareMounts(host.root),
          ...ground.shell(START),
          cgroup?.joins.other.join(' ') ?? '',
          places.table,
          host.root ? INIT_OOM_SCORE : '',
          ...keeperArguments(host, spec.network, id, INIT),
        ],
        { root: host.root, id: null },
      ),
    env: async () => image.config.env,
    enter: (cgroup: { views: { folder: string; at: string }[] } | null) =>
      enterArguments(places, image, host, cgroup?.views ?? []),
  };
  return holdSandbox(ground, id, spec, plan, signal);
}

/** A mount namespace of the sandbox's own; without root in a user namespace where this user is root. */
export const unshareMounts = (root: boolean): string[] =>
  root ? ['unshare', '--mount'] : ['unshare', '--user', '--map-root-user', '--mount'];

/** As engines do: the folder to work in exists, whatever the image has. */
async function makeWorkdir(folder: string, image: RootImage, workdir: string): Promise<void> {
  if (workdir === '/' || image.lowers.some((lower) => resolveInside(lower, workdir) !== null)) return;
  const path = join(folder, 'upper-root', workdir);
  await mkdir(path, { recursive: true });
  await chmod(path, 0o755);
}
