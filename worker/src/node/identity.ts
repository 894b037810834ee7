/** Who this worker is, in a way that outlives it: a dead owner can be told from a living one without asking anybody. */
import { readFileSync, readlinkSync } from 'node:fs';
import type { Owner } from '../sandbox/runtime.ts';

export type Identity = { farm: string; worker: string; node: string; pid: number; pid_started: string };

/**
 * Start time of a process in clock ticks since boot (field 22 of /proc/PID/stat), which with the pid names it for
 * ever on this host; null when there is no such process (a zombie counts as none).
 */
export function processStarted(pid: number): string | null {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch (error) {
    if (
      (error as NodeJS.ErrnoException).code === 'ENOENT' ||
      (error as NodeJS.ErrnoException).code === 'ESRCH'
    )
      return null;
    throw error;
  }
  // The command name (field 2) may hold blanks and parentheses: count from its end.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields[0] === 'Z' ? null : (fields[19] ?? null);
}

/**
 * What marks a process beside its pid: when it started, and in which namespace the pid counts. Workers in containers
 * that share an engine cannot see one another's processes.
 */
function mark(pid: number): string | null {
  const started = processStarted(pid);
  return started === null ? null : `${started}@${pidNamespace()}`;
}

let namespace: string | null = null;
function pidNamespace(): string {
  namespace ??= /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '';
  return namespace;
}

/** The mark of this process, for what it leaves where processes of other namespaces can see it. */
export const ownMark = (): string => mark(process.pid) ?? '';

/**
 * Whether the very process that made the mark is alive; null when it cannot be seen from here, because its pid counts
 * in another namespace.
 */
export function ownerAlive(owner: Pick<Owner, 'pid' | 'pid_started'>): boolean | null {
  const [, theirs] = owner.pid_started.split('@');
  // Marks on files of one host carry no namespace.
  if (theirs === undefined) return processStarted(owner.pid) === owner.pid_started;
  return theirs === pidNamespace() ? mark(owner.pid) === owner.pid_started : null;
}

export function identify(farm: string, worker: string, node: string): Identity {
  return { farm, worker, node, pid: process.pid, pid_started: ownMark() };
}
