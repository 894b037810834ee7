/** Identifies processes by pid and start time from /proc, so that a reused pid is recognised. */
import { createHash } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';

export type ProcessStat = {
  /** The process state; `Z` is a zombie. */
  state: string;
  parent: number;
  /** Start of the process in clock ticks since boot; unique with the pid until the host restarts. */
  started: string;
};

/** Reads the state, parent and start of a process; null: no such process. */
export function readProcessStat(pid: number): ProcessStat | null {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return null;
    throw error;
  }
  // The command name (field 2) may contain blanks and parentheses.
  const [state = '', parent, ...rest] = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return { state, parent: Number(parent), started: rest[17] ?? '' };
}

/** Returns the start of a process in clock ticks since boot; null if the process does not exist or is a zombie. */
export function processStarted(pid: number): string | null {
  const stat = readProcessStat(pid);
  return stat === null || stat.state === 'Z' ? null : stat.started;
}

/** Identifies a process across namespaces that share an engine or a folder. */
export type ProcessMark = {
  pid: number;
  /** `STARTED@NAMESPACE`: start in clock ticks since boot, and pid namespace. Files that only one host reads omit the namespace. */
  pid_started: string;
};

/** The number of the first process namespace of every Linux kernel (PROC_PID_INIT_INO in include/linux/proc_ns.h). */
const FIRST_NAMESPACE = '4026531836';

/**
 * Returns a unique name of a process namespace, in digits. Kernels reuse numbers of namespaces, and pods with own kernels (Kata, gVisor)
 * have equal numbers, so names of namespaces other than the first include a hash of boot id and host name.
 */
export function namespaceName(inode: string, boot: string, host: string): string {
  if (inode === FIRST_NAMESPACE) return inode;
  const digest = createHash('sha256').update(`${boot}\n${host}`).digest();
  return `${inode}${String(digest.readUInt32BE(0)).padStart(10, '0')}`;
}

const textOf = (path: string): string => {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return '';
  }
};

let namespace: string | null = null;
function pidNamespace(): string {
  namespace ??= namespaceName(
    /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '',
    textOf('/proc/sys/kernel/random/boot_id'),
    textOf('/proc/sys/kernel/hostname'),
  );
  return namespace;
}

function startMark(pid: number): string | null {
  const started = processStarted(pid);
  return started === null ? null : `${started}@${pidNamespace()}`;
}

/** Returns `pid_started` of this process. */
export const ownStartMark = (): string => startMark(process.pid) ?? '';

/** Returns whether the process of a mark is alive; null if the mark is from another pid namespace. */
export function isProcessAlive(mark: ProcessMark): boolean | null {
  const [, theirs] = mark.pid_started.split('@');
  if (theirs === undefined) return processStarted(mark.pid) === mark.pid_started;
  return theirs === pidNamespace() ? startMark(mark.pid) === mark.pid_started : null;
}

export const bootId = (): string => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
