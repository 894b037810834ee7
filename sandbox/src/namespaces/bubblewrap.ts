/** Options of bubblewrap for every process of a sandbox, whichever runtime made its tree: its privileges and its procfs. */
import { existsSync } from 'node:fs';

/** Capabilities of root that package tests need inside; the engines' list without devices, raw sockets and chroot. */
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
/** Process 1 does not use the first one; it has it because a process with fewer capabilities may not look into it (its root, files, memory). */
export const INIT_CAPABILITIES = ['CAP_AUDIT_READ', 'CAP_KILL'];
/** Root inside is the host's root by number, so these parts of procfs, which root may write or read, are closed; bubblewrap closes irq and bus. */
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
export const HOST_NAME = 'sandbox';
/** Files that a process inherits when it enters a sandbox, besides its standard streams; `starter.sh` opens the last two. */
export const STATUS_FD = '3';
const PIDNS_FD = '7';
const FILTER_FD = '8';

/**
 * For every process that enters a sandbox. Without --die-with-parent: its parent is the process that only steps into the namespace
 * and exits, on a loaded machine after the command has started. The death of process 1 ends the command in any case.
 */
export const ENTER_OPTIONS: readonly string[] = [
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

/** Closes the parts of procfs that root could use. @param tree folder in which the sandbox's /proc is */
export function procMasks(tree = ''): string[] {
  const present = (names: readonly string[]): string[] =>
    names.map((name) => `/proc/${name}`).filter(existsSync);
  return [
    ...present(READ_ONLY_PROC).flatMap((path) => ['--ro-bind', path, `${tree}${path}`]),
    ...present(HIDDEN_PROC_FILES).flatMap((path) => ['--ro-bind', '/dev/null', `${tree}${path}`]),
    ...present(HIDDEN_PROC_FOLDERS).flatMap((path) => ['--tmpfs', `${tree}${path}`]),
  ];
}
