/** Starts one sandbox: overlays over an unpacked image, in namespaces that bubblewrap makes. */
import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { resolveInside } from '../images/treepath.ts';
import { INIT, type LaunchPlan, launchSandbox } from '../namespaces/launch.ts';
import { newSandboxId } from '../namespaces/records.ts';
import type { RuntimeSetup } from '../namespaces/setup.ts';
import type { Container, ContainerSpec } from '../runtime.ts';
import { readAccount } from './account.ts';
import {
  enterArguments,
  foldersOf,
  type Host,
  layersOf,
  mountTable,
  pathsOf,
  supervisorArguments,
  treeArguments,
} from './arguments.ts';
import type { RootImage } from './images.ts';

/** Throws RolloutFailure sandbox_start / node_disk / node_memory. */
export async function startRootfs(
  setup: RuntimeSetup,
  host: Host,
  spec: ContainerSpec,
  image: RootImage,
  signal: AbortSignal,
): Promise<Container> {
  signal.throwIfAborted();
  const id = newSandboxId('rootfs');
  const paths = pathsOf(join(setup.scratchDir, id));
  const plan: LaunchPlan = {
    // Without root, the only user inside is user 0, which is the worker's user on the host.
    account: host.root ? readAccount(image) : { uid: 0, gid: 0, home: '/root' },
    folders: foldersOf(paths, image, host),
    layers: layersOf(paths, image, host),
    mounts: mountTable(paths, image, host, spec.network),
    prepare: () => makeWorkdir(paths.folder, image, spec.workdir),
    command: (cgroup) =>
      supervisorArguments(
        host,
        { id, init: INIT, network: spec.network },
        treeArguments(paths, image, host, cgroup?.views ?? []),
      ),
    supervisor: { id: null },
    env: async () => image.config.env,
    enter: () => enterArguments(host),
  };
  return launchSandbox(setup, id, spec, plan, signal);
}

/** Creates the working folder if the image lacks it, as engines do. */
async function makeWorkdir(folder: string, image: RootImage, workdir: string): Promise<void> {
  if (workdir === '/' || image.lowers.some((lower) => resolveInside(lower, workdir) !== null)) return;
  const path = join(folder, 'upper-root', workdir);
  await mkdir(path, { recursive: true });
  await chmod(path, 0o755);
}
