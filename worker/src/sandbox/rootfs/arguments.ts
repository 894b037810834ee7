/** Command lines and mount tables of a sandbox: what is isolated and how is decided here. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ContainerSpec } from '../runtime.ts';
import type { Layer } from '../upper.ts';
import type { RootImage } from './images.ts';

/** What package tests need of root's power inside; the engines' list without devices, raw sockets and chroot. */
const CAPABILITIES = [
  'CAP_CHOWN',
  'CAP_DAC_OVERRIDE',
  'CAP_FOWNER',
  'CAP_FSETID',
  'CAP_KILL',
  'CAP_NET_BIND_SERVICE',
  'CAP_SETGID',
  'CAP_SETPCAP',
  'CAP_SETUID',
];
/** The first is of no use to init, and nobody else has it: who has fewer may not look into a process (its root, its files, its memory). */
export const INIT_CAPABILITIES = ['CAP_AUDIT_READ', 'CAP_KILL'];
/** Root inside is the host's root by number, so what procfs lets root write or read must be closed; bubblewrap closes irq and bus itself. */
const READ_ONLY_PROC = ['sys', 'sysrq-trigger', 'fs', 'mtrr', 'asound'];
const HIDDEN_PROC_FILES = [
  'kcore',
  'keys',
  'key-users',
  'timer_list',
  'sched_debug',
  'latency_stats',
  'kpagecount',
];
const HIDDEN_PROC_FOLDERS = ['acpi', 'scsi'];
const SHM_BYTES = 64 * 1024 * 1024;
export const HOST_NAME = 'sandbox';
/** As seen by the processes of a sandbox; they inherit nothing else but these two files and their standard streams. */
const STATUS_FD = '3';
const PIDNS_FD = '7';
const FILTER_FD = '8';

export type Host = {
  root: boolean;
  bwrap: string;
  bash: string;
  /** A layer above every image: mount points, /etc/hosts, /etc/resolv.conf; one for each kind of network. */
  base: Record<ContainerSpec['network'], string>;
};

export type Places = { folder: string; merged: string; shm: string; table: string };

export const placesOf = (folder: string): Places => ({
  folder,
  merged: join(folder, 'merged'),
  shm: join(folder, 'shm'),
  table: join(folder, 'mounts'),
});

const upperOf = ({ folder }: Places, name: string): string => join(folder, `upper-${name}`);

/** Folders to make for a sandbox, parents first. */
export function foldersOf(places: Places, image: RootImage, host: Host): string[] {
  const overlays = image.folders.filter((one) => overlaid(one, host)).map(({ at }) => at);
  return [
    places.merged,
    places.shm,
    ...['root', ...overlays].flatMap((name) => [upperOf(places, name), join(places.folder, `work-${name}`)]),
  ];
}

/** Where a sandbox's changes are, the root's first. */
export function layersOf(places: Places, image: RootImage, host: Host): [Layer, ...Layer[]] {
  const above = image.folders.filter((one) => overlaid(one, host));
  return [
    { at: '/', upper: upperOf(places, 'root') },
    ...above.map(({ at }) => ({ at: `/${at}`, upper: upperOf(places, at) })),
  ];
}

/** Without root, what root owns cannot be copied up anyway: such folders are bound read-only. */
const overlaid = (one: RootImage['folders'][number], host: Host): boolean =>
  host.root || one.lowers.length > 1;

export function mountTable(
  places: Places,
  image: RootImage,
  host: Host,
  network: ContainerSpec['network'],
): string {
  const overlay = (name: string, target: string, lowers: readonly string[]): string => {
    const upper = upperOf(places, name);
    const work = join(places.folder, `work-${name}`);
    // volatile: what a sandbox writes dies with it, so nothing is ever synced.
    // redirect_dir=off: a renamed folder of the image must show in the upper directory as what it is, all of it copied.
    const options = [
      `lowerdir=${lowers.join(':')}`,
      `upperdir=${upper}`,
      `workdir=${work}`,
      'volatile',
      'nosuid',
      'nodev',
      host.root ? 'redirect_dir=off' : 'userxattr',
    ];
    return `overlay ${target} overlay ${options.join(',')} 0 0\n`;
  };
  let table = overlay('root', places.merged, [host.base[network], ...image.lowers]);
  for (const one of image.folders) {
    if (overlaid(one, host)) table += overlay(one.at, join(places.merged, one.at), one.lowers);
  }
  table += `tmpfs ${places.shm} tmpfs size=${SHM_BYTES},mode=1777,nosuid,nodev 0 0\n`;
  // A process about to enter can be looked at from inside for a moment; through its /proc/PID/exe root could overwrite the program.
  if (host.root) table += `${host.bwrap} ${host.bwrap} none bind,ro 0 0\n`;
  return table;
}

/** Becomes the keeper of a sandbox: a process outside that dies with the worker, and whose death ends the sandbox. */
export function keeperArguments(
  host: Host,
  network: ContainerSpec['network'],
  id: string,
  init: string,
): string[] {
  const system = ['usr', 'bin', 'lib', 'lib64'].filter((name) => existsSync(`/${name}`));
  return [
    host.bwrap,
    '--unshare-pid',
    '--unshare-ipc',
    '--unshare-uts',
    '--unshare-cgroup-try',
    ...(network === 'none' ? ['--unshare-net'] : []),
    '--hostname',
    HOST_NAME,
    '--die-with-parent',
    '--as-pid-1',
    '--cap-drop',
    'ALL',
    ...INIT_CAPABILITIES.flatMap((name) => ['--cap-add', name]),
    '--tmpfs',
    '/',
    ...system.flatMap((name) => ['--ro-bind', `/${name}`, `/${name}`]),
    '--chdir',
    '/',
    '--clearenv',
    '--json-status-fd',
    STATUS_FD,
    '--',
    host.bash,
    '--noprofile',
    '--norc',
    '-c',
    init,
    id,
  ];
}

/**
 * bubblewrap's options for every process that is let into a sandbox. Without --die-with-parent: its parent would be the process
 * that only steps into the namespace and exits, on a loaded machine after the command has begun; process 1's death is theirs anyway.
 */
export const LET_IN: readonly string[] = [
  '--pidns',
  PIDNS_FD,
  '--seccomp',
  FILTER_FD,
  '--json-status-fd',
  STATUS_FD,
  '--new-session',
  '--cap-drop',
  'ALL',
  ...CAPABILITIES.flatMap((name) => ['--cap-add', name]),
];

/** The part of an entering command line that is the same for every process of a container. */
export function enterArguments(
  places: Places,
  image: RootImage,
  host: Host,
  views: readonly { folder: string; at: string }[],
): string[] {
  return [
    host.bwrap,
    ...LET_IN,
    '--bind',
    places.merged,
    '/',
    ...image.folders
      .filter((one) => !overlaid(one, host))
      .flatMap(({ at }) => ['--ro-bind', `/${at}`, `/${at}`]),
    '--dev',
    '/dev',
    '--bind',
    places.shm,
    '/dev/shm',
    '--proc',
    '/proc',
    ...(host.root ? procMasks() : []),
    ...views.flatMap(({ folder, at }) => ['--ro-bind', folder, at]),
    '--clearenv',
  ];
}

/** bubblewrap's options that close what root could use of procfs. */
export function procMasks(): string[] {
  const proc = (names: readonly string[]): string[] =>
    names.map((name) => `/proc/${name}`).filter(existsSync);
  return [
    ...proc(READ_ONLY_PROC).flatMap((path) => ['--ro-bind', path, path]),
    ...proc(HIDDEN_PROC_FILES).flatMap((path) => ['--ro-bind', '/dev/null', path]),
    ...proc(HIDDEN_PROC_FOLDERS).flatMap((path) => ['--tmpfs', path]),
  ];
}
