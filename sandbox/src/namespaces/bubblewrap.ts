/** bubblewrap's options for the processes of a sandbox: privileges and procfs. */
import { existsSync } from 'node:fs';

/**
 * Capabilities that the tests of packages need as root: Docker's default list without AUDIT_WRITE, MKNOD, NET_RAW, SETFCAP and
 * SYS_CHROOT.
 */
export const CAPABILITIES: readonly string[] = [
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
/**
 * Capabilities of process 1. CAP_AUDIT_READ is a protection: a process with fewer capabilities than process 1 may not read the root,
 * files or memory of process 1.
 */
export const INIT_CAPABILITIES = ['CAP_AUDIT_READ', 'CAP_KILL'];
/** Read-only parts of procfs: root in a sandbox has the uid of the host's root. bubblewrap itself protects irq and bus. */
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
/** File descriptors that an entering process inherits besides its standard streams; `starter.sh` opens them. */
export const STATUS_FD = '3';
const PIDNS_FD = '7';
const FILTER_FD = '8';

/**
 * Options for every process that enters a sandbox. --die-with-parent is absent, because the parent enters the namespace and exits, on a
 * loaded machine after the start of the command. The death of process 1 ends the command.
 */
export const ENTER_OPTIONS: readonly string[] = [
  ...['--pidns', PIDNS_FD],
  ...['--seccomp', FILTER_FD],
  ...['--json-status-fd', STATUS_FD],
  '--new-session',
  ...['--cap-drop', 'ALL'],
  ...CAPABILITIES.flatMap((name) => ['--cap-add', name]),
];

export function procMasks(tree = ''): string[] {
  const present = (names: readonly string[]): string[] =>
    names.map((name) => `/proc/${name}`).filter(existsSync);
  return [
    ...present(READ_ONLY_PROC).flatMap((path) => ['--ro-bind', path, `${tree}${path}`]),
    ...present(HIDDEN_PROC_FILES).flatMap((path) => ['--ro-bind', '/dev/null', `${tree}${path}`]),
    ...present(HIDDEN_PROC_FOLDERS).flatMap((path) => ['--tmpfs', `${tree}${path}`]),
  ];
}
