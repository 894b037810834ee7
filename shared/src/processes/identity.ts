/** Identifies the process behind a pid, so that a dead process, or another one that reuses the pid, is recognised from /proc alone. */
import { createHash } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';

export type ProcessStat = {
  /** The process state; `Z` is a zombie. */
  state: string;
  parent: number;
  /** Clock ticks since boot; with the pid it identifies the process until the host restarts. */
  started: string;
};

/** Null when there is no such process. */
export function readProcessStat(pid: number): ProcessStat | null {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return null;
    throw error;
  }
  // The command name (field 2) may contain blanks and parentheses: count from its end.
  const [state = '', parent, ...rest] = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return { state, parent: Number(parent), started: rest[17] ?? '' };
}

/** When a process started; null when it does not exist or is a zombie. */
export function processStarted(pid: number): string | null {
  const stat = readProcessStat(pid);
  return stat === null || stat.state === 'Z' ? null : stat.started;
}

/** Identifies a process to processes of other namespaces, which share an engine or a folder with it but not its pids. */
export type ProcessMark = {
  pid: number;
  /** `STARTED@NAMESPACE`; without a namespace in files that only one host reads. */
  pid_started: string;
};

/** The number of the first process namespace of every Linux kernel (PROC_PID_INIT_INO in include/linux/proc_ns.h). */
const FIRST_NAMESPACE = '4026531836';

/**
 * The name of a process namespace that no other has, digits only. A kernel numbers its namespaces, and uses a number again when its
 * namespace has ended; and pods with kernels of their own (Kata, gVisor) that share a folder have the same numbers. So the name of every
 * namespace but the first also says which start of which kernel it belongs to, and which host name it began with.
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

/** The `pid_started` of this process. */
export const ownStartMark = (): string => startMark(process.pid) ?? '';

/** Whether the process that made the mark is alive; null when this process cannot tell, because the pid belongs to another namespace. */
export function isProcessAlive(mark: ProcessMark): boolean | null {
  const [, theirs] = mark.pid_started.split('@');
  if (theirs === undefined) return processStarted(mark.pid) === mark.pid_started;
  return theirs === pidNamespace() ? startMark(mark.pid) === mark.pid_started : null;
}

/** Changes at each start of the host. */
export const bootId = (): string => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
