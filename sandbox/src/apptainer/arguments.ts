/** Command lines of Apptainer's sandboxes, and of the processes that enter them. */
import { join } from 'node:path';
import { ENTER_OPTIONS, HOST_NAME, INIT_CAPABILITIES, procMasks } from '../namespaces/bubblewrap.ts';
import { overlayMount, sharedMemoryMount } from '../namespaces/mounts.ts';
import type { RuntimeSetup } from '../namespaces/setup.ts';
import type { ContainerSpec } from '../runtime.ts';
import { TOOLS_AT, toolLine } from './tools.ts';

const ALL_CAPABILITIES =
  'CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE';

export type Program = Pick<RuntimeSetup, 'root' | 'bash' | 'base'> & { path: string; tools: string };

/** Files of /etc that are copied for each sandbox, because the sandbox may change them. */
export const OWN_FILES = ['hosts', 'resolv.conf'];

type ApptainerPaths = ReturnType<typeof pathsOf>;

export const pathsOf = (folder: string) => ({
  overlay: join(folder, 'overlay'),
  merged: join(folder, 'merged'),
  etc: join(folder, 'etc'),
  shm: join(folder, 'shm'),
});

export const foldersOf = ({ overlay, merged, etc, shm }: ApptainerPaths): string[] => [
  overlay,
  merged,
  etc,
  shm,
  join(overlay, 'upper'),
  join(overlay, 'work'),
  join(overlay, 'points'),
  join(overlay, 'points', TOOLS_AT),
];

/**
 * Returns the mounts that are made before Apptainer starts. Without root the farm also mounts the overlay: Apptainer would mount it
 * without `userxattr`, and then renaming a folder of the image, or creating a removed folder again, fails with EIO (pip does both).
 */
export function mountTable(
  { overlay, merged, shm }: ApptainerPaths,
  { root, base }: Program,
  image: string,
  network: ContainerSpec['network'],
): string {
  const shared = sharedMemoryMount(shm);
  if (root) return shared;
  const layers = {
    ...{ upper: join(overlay, 'upper'), work: join(overlay, 'work') },
    lowers: [join(overlay, 'points'), base[network], image],
  };
  return shared + overlayMount(merged, layers, 'userxattr');
}

/** Returns the command line that starts a sandbox with one `apptainer exec`. Process 1 of the sandbox is a script of the farm. */
export function execArguments(
  program: Program,
  paths: ApptainerPaths,
  image: string,
  { network, mounts = [] }: Pick<ContainerSpec, 'network' | 'mounts'>,
  views: readonly { folder: string; at: string }[],
  id: string,
  init: string,
): string[] {
  const dropped = ALL_CAPABILITIES.split(' ')
    .map((name) => `CAP_${name}`)
    .filter((name) => !INIT_CAPABILITIES.includes(name));
  const files = OWN_FILES.map((name) => `${join(paths.etc, name)}:/etc/${name}`);
  return [
    // `unshare` makes the control group namespace, because Apptainer without root would not own the namespace.
    ...['unshare', '--cgroup', '--'],
    ...[program.path, '--silent', 'exec'],
    '--containall',
    '--cleanenv',
    '--no-home',
    '--pid',
    // Apptainer's own process 1 would adopt the sandbox's orphans.
    '--no-init',
    '--ipc',
    '--uts',
    ...['--hostname', HOST_NAME],
    ...(network === 'none' ? ['--net', '--network', 'none'] : []),
    ...['--no-mount', 'proc,sys,home,tmp,hostfs,cwd,bind-paths'],
    '--keep-privs',
    ...['--drop-caps', dropped.join(',')],
    ...(program.root ? ['--overlay', paths.overlay] : ['--writable']),
    ...[
      // bubblewrap needs /proc and runs outside of the process namespace. The processes that it starts get their own /proc.
      '/proc',
      `${program.tools}:${TOOLS_AT}:ro`,
      `${paths.shm}:/dev/shm`,
      ...files,
      ...views.map(({ folder, at }) => `${folder}:${at}:ro`),
      // Apptainer mounts with nosuid and nodev.
      ...mounts.map(({ source, target }) => `${source}:${target}:ro`),
    ].flatMap((bind) => ['--bind', bind]),
    ...['--pwd', '/'],
    program.root ? image : paths.merged,
    ...[...toolLine('bash'), '--noprofile', '--norc', '-c', init, id],
  ];
}

/**
 * bubblewrap runs inside the sandbox's mounts and outside of its process namespace. It drops nsenter's privileges and hides the
 * farm's programs.
 */
export function enterArguments(root: boolean, workdir: string): string[] {
  return [
    ...toolLine('bwrap'),
    ...ENTER_OPTIONS,
    ...['--bind', '/', '/'],
    ...['--dev-bind', '/dev', '/dev'],
    ...['--proc', '/proc'],
    ...(root ? procMasks() : []),
    ...['--tmpfs', TOOLS_AT],
    ...['--remount-ro', TOOLS_AT],
    ...(workdir === '/' ? [] : ['--dir', workdir]),
    '--clearenv',
  ];
}
