/** Starts one sandbox: overlays over an unpacked image, in namespaces that bubblewrap makes. */
import { chmod, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RolloutFailure } from '@swefarm/shared';
import { resolveInside } from '../images/treepath.ts';
import { type Account, ROOT } from '../namespaces/account.ts';
import { INIT, type LaunchPlan, launchSandbox } from '../namespaces/launch.ts';
import { newSandboxId } from '../namespaces/records.ts';
import type { RuntimeSetup } from '../namespaces/setup.ts';
import type { Container, ContainerSpec } from '../runtime.ts';
import {
  enterArguments,
  type Host,
  mountTable,
  overlaysOf,
  pathsOf,
  supervisorArguments,
  TREE,
} from './arguments.ts';
import type { RootImage } from './images.ts';

/** Throws RolloutFailure sandbox_start / sandbox_refused / node_disk / node_memory. */
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
  const overlays = overlaysOf(paths, image, host);
  const plan: LaunchPlan = {
    // Without root, the only user inside is user 0, which is the worker's user on the host.
    account: host.root && spec.user !== 'root' ? await readAccount(image, image.config.user) : ROOT,
    ...(host.root ? { accountOf: (user: string) => readAccount(image, user) } : {}),
    folders: [paths.merged, paths.shm, ...overlays.flatMap(({ upper, work }) => [upper, work])],
    layers: overlays,
    mounts: mountTable(paths, overlays, host, spec.network),
    prepare: () => makeWorkdir(paths.folder, image, spec.workdir),
    command: (cgroup) =>
      supervisorArguments(host, paths, image, { ...spec, id, init: INIT }, cgroup?.views ?? []),
    supervisor: { id: null },
    env: async () => image.config.env,
    enter: enterArguments(host),
    tree: TREE,
  };
  return launchSandbox(setup, id, spec, plan, signal);
}

/** Creates the working folder if the image lacks it, as engines do. */
async function makeWorkdir(folder: string, image: RootImage, workdir: string): Promise<void> {
  if (workdir === '/') return;
  for (const lower of image.lowers) if ((await resolveInside(lower, workdir)) !== null) return;
  const path = join(folder, 'upper-root', workdir);
  await mkdir(path, { recursive: true });
  await chmod(path, 0o755);
}

/** Finds a user in the image's /etc/passwd, by number or by name, and returns the account. Throws RolloutFailure sandbox_refused. */
async function readAccount(image: RootImage, named: string): Promise<Account> {
  const [user = '', group] = named.split(':');
  const isNumber = /^\d+$/.test(user);
  const wanted = user === '' ? '0' : user;
  const row = (await rowsOf(image, 'passwd')).find((fields) => fields[0] === wanted || fields[2] === wanted);
  if (!row && !isNumber && user !== '' && user !== 'root') {
    throw new RolloutFailure('sandbox_refused', `the user ${user} is not in /etc/passwd of the image`);
  }
  const uid = Number(row?.[2] ?? (isNumber ? user : 0));
  let gid = Number(row?.[3] ?? uid);
  if (group !== undefined) {
    gid = /^\d+$/.test(group)
      ? Number(group)
      : Number((await rowsOf(image, 'group')).find((fields) => fields[0] === group)?.[2]);
  }
  if (!Number.isInteger(gid))
    throw new RolloutFailure('sandbox_refused', `the image's group ${group} is not in its /etc/group`);
  return { uid, gid, home: row?.[5] || (uid === 0 ? '/root' : '/') };
}

/** Returns the lines of a file of /etc as fields, from the topmost layer that has the file. */
async function rowsOf(image: RootImage, name: 'passwd' | 'group'): Promise<string[][]> {
  for (const lower of image.lowers) {
    const file = await resolveInside(lower, `/etc/${name}`);
    if (file) return (await readFile(file, 'utf8')).split('\n').map((line) => line.split(':'));
  }
  return [];
}
