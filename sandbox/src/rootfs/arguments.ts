/** Command lines and mount table of a rootfs sandbox, which define its isolation. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import {
  ENTER_OPTIONS,
  HOST_NAME,
  INIT_CAPABILITIES,
  procMasks,
  STATUS_FD,
} from '../namespaces/bubblewrap.ts';
import { overlayMount, sharedMemoryMount } from '../namespaces/mounts.ts';
import type { RuntimeSetup } from '../namespaces/setup.ts';
import type { ContainerSpec } from '../runtime.ts';
import type { RootImage } from './images.ts';

export type Host = Pick<RuntimeSetup, 'root' | 'bash' | 'base'> & {
  /**
   * True: this process runs in a user namespace, as in a pod with its own users. Root of such a namespace may not write the attributes
   * of overlays that require real root.
   */
  userNamespace: boolean;
  bwrap: string;
};

type RootfsPaths = ReturnType<typeof pathsOf>;

/** Path of the sandbox's tree, with all mounts, in the root of process 1. */
export const TREE = '/tree';
/** Folders of the host in the root of process 1, for bash as process 1 and for the bubblewrap of entering processes. */
const SYSTEM = ['usr', 'bin', 'sbin', 'lib', 'lib64'];

export const pathsOf = (folder: string) => ({
  folder,
  merged: join(folder, 'merged'),
  shm: join(folder, 'shm'),
});

/** An overlay of the sandbox's tree, with its path in the sandbox. */
type Overlay = { at: string; upper: string; work: string; lowers: readonly string[] };

/** Returns the overlays of a sandbox; the overlay of the root is first. */
export function overlaysOf({ folder }: RootfsPaths, image: RootImage, host: Host): [Overlay, ...Overlay[]] {
  const overlay = (name: string, at: string, lowers: readonly string[]): Overlay => ({
    ...{ at, lowers, upper: join(folder, `upper-${name}`), work: join(folder, `work-${name}`) },
  });
  const above = image.folders.filter((one) => isOverlaid(one, host));
  return [
    overlay('root', '/', image.lowers),
    ...above.map(({ at, lowers }) => overlay(at, `/${at}`, lowers)),
  ];
}

/** Returns whether a folder gets an overlay. Without root, files of root cannot be copied up, so a single layer is bound read-only. */
const isOverlaid = (one: RootImage['folders'][number], host: Host): boolean =>
  host.root || one.lowers.length > 1;

export function mountTable(
  { merged, shm }: RootfsPaths,
  [root, ...above]: readonly [Overlay, ...Overlay[]],
  host: Host,
  network: ContainerSpec['network'],
): string {
  // redirect_dir=off: a renamed folder of the image must be a complete copy in the upper directory.
  const attributes = host.root && !host.userNamespace ? 'redirect_dir=off' : 'userxattr';
  const lines = [
    overlayMount(merged, { ...root, lowers: [host.base[network], ...root.lowers] }, attributes),
    ...above.map((one) => overlayMount(join(merged, one.at), one, attributes)),
    sharedMemoryMount(shm),
  ];
  // An entering bubblewrap is visible from inside for a moment. Root inside could overwrite the program through /proc/PID/exe.
  if (host.root) lines.push(`${host.bwrap} ${host.bwrap} none bind,ro 0 0\n`);
  return lines.join('');
}

/**
 * Returns the command line of a sandbox's supervisor: a process outside that ends with the worker, and whose death ends the sandbox.
 * bubblewrap makes the mounts once, in the mount namespace of process 1, which no process inside can inspect.
 */
export function supervisorArguments(
  host: Host,
  { merged, shm }: RootfsPaths,
  image: RootImage,
  {
    id,
    init,
    network,
    mounts = [],
  }: Pick<ContainerSpec, 'network' | 'mounts'> & { id: string; init: string },
  views: readonly { folder: string; at: string }[],
): string[] {
  const readOnly = (from: string, at = from): string[] => ['--ro-bind', from, at];
  const bound = image.folders.filter((one) => !isOverlaid(one, host));
  return [
    host.bwrap,
    '--unshare-pid',
    '--unshare-ipc',
    '--unshare-uts',
    '--unshare-cgroup-try',
    ...(network === 'none' ? ['--unshare-net'] : []),
    ...['--hostname', HOST_NAME],
    '--die-with-parent',
    '--as-pid-1',
    ...['--cap-drop', 'ALL'],
    ...INIT_CAPABILITIES.flatMap((name) => ['--cap-add', name]),
    ...['--tmpfs', '/'],
    ...SYSTEM.filter((name) => existsSync(`/${name}`)).flatMap((name) => readOnly(`/${name}`)),
    // An entering bubblewrap runs outside of the process namespace, and needs /proc and a folder for mounts.
    ...[...readOnly('/proc'), '--dir', '/tmp'],
    ...['--bind', merged, TREE],
    ...bound.flatMap(({ at }) => readOnly(`/${at}`, `${TREE}/${at}`)),
    ...['--dev', `${TREE}/dev`, '--bind', shm, `${TREE}/dev/shm`, '--proc', `${TREE}/proc`],
    ...(host.root ? procMasks(TREE) : []),
    ...views.flatMap(({ folder, at }) => readOnly(folder, `${TREE}${at}`)),
    // bubblewrap mounts with nosuid and nodev. Without `--dir` only root could enter the targets' parents.
    ...mounts.flatMap(({ source, target }) => [
      '--dir',
      `${TREE}${target}`,
      ...readOnly(source, `${TREE}${target}`),
    ]),
    ...['--chdir', '/'],
    '--clearenv',
    ...['--json-status-fd', STATUS_FD],
    '--',
    ...[host.bash, '--noprofile', '--norc', '-c', init, id],
  ];
}

/** Returns the constant part of a command line that enters the sandbox. It runs in the mount namespace of process 1. */
export const enterArguments = (host: Host): string[] => [
  host.bwrap,
  ...ENTER_OPTIONS,
  // Only /dev has devices: the other folders of the tree are mounted with nodev.
  ...['--dev-bind', TREE, '/'],
  '--clearenv',
];
