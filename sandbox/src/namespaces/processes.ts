/**
 * Finds processes of sandboxes from the host: the processes of a sandbox by process namespace, the processes of an exec by mount
 * namespace. A process can neither leave nor fake a namespace.
 */

import { readdir, readFile, readlink } from 'node:fs/promises';
import { poll, readProcessStat } from '@swefarm/shared';

export type Namespace = 'pid' | 'mnt' | 'net';

/** Returns the namespace of a process, such as `pid:[4026532182]`; null if the process has ended or this user may not inspect it. */
export const readNamespace = (pid: number, kind: Namespace): Promise<string | null> =>
  readlink(`/proc/${pid}/ns/${kind}`).catch(() => null);

/** Returns the text of a file of a process; empty if the process has ended or this user may not read the file. */
export const readProcessFile = (
  pid: number,
  file: 'cgroup' | 'environ' | 'comm' | 'statm' | 'status' | 'cmdline' | 'smaps_rollup',
) => readFile(`/proc/${pid}/${file}`, 'latin1').catch(() => '');

export async function allPids(): Promise<number[]> {
  return (await readdir('/proc')).map(Number).filter((pid) => Number.isInteger(pid) && pid > 0);
}

/** Returns the live processes by namespace, in one pass over the process table. */
export async function membersBy(kind: Namespace): Promise<Map<string, number[]>> {
  const members = new Map<string, number[]>();
  for (const pid of await allPids()) {
    const namespace = await readNamespace(pid, kind);
    if (namespace === null) continue;
    const list = members.get(namespace);
    if (list) list.push(pid);
    else members.set(namespace, [pid]);
  }
  return members;
}

const ROUNDS = 40;

/**
 * Kills the processes in a namespace of a sandbox, except process 1, until none remains; false if some remain (a fork bomb). Kills none
 * after the end of the sandbox, because the kernel may give the namespace's number to another sandbox. Until that end, this process has
 * the namespaces open, so their numbers are not reused.
 */
export async function killNamespace(
  kind: Namespace,
  namespace: string,
  sandbox: { namespace: string; init: number; alive(): boolean },
): Promise<boolean> {
  const killAll = async (): Promise<boolean> => {
    const pids: number[] = [];
    for (const pid of (await membersBy(kind)).get(namespace) ?? []) {
      if (pid === sandbox.init) continue;
      if ((await readNamespace(pid, 'pid')) === sandbox.namespace) pids.push(pid);
    }
    if (!sandbox.alive()) return true;
    for (const pid of pids) killQuietly(pid);
    return pids.length === 0;
  };
  const isDone = await poll(killAll, { pauseMs: (tries) => (tries <= 5 ? 5 : 25), tries: ROUNDS });
  return isDone === true;
}

/** Returns false if the process has already ended. */
export function killQuietly(pid: number): boolean {
  try {
    process.kill(pid, 'SIGKILL');
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    return false;
  }
}

export function parentsOfDead(pids: readonly number[]): Set<number> {
  const parents = new Set<number>();
  for (const pid of pids) {
    const stat = readProcessStat(pid);
    if (stat?.state === 'Z' && stat.parent > 1) parents.add(stat.parent);
  }
  return parents;
}

const PAGE_BYTES = 4096;

/** Returns the resident bytes, in a fast measurement that counts shared pages in every process; 0 for an ended process. */
export async function residentBytes(pid: number): Promise<number> {
  const text = await readProcessFile(pid, 'statm');
  return Number(text.split(' ')[1] ?? 0) * PAGE_BYTES;
}

/** Returns the proportional bytes, in a slow measurement that divides shared pages among their processes. */
export async function proportionalBytes(pid: number): Promise<number> {
  const text = await readProcessFile(pid, 'smaps_rollup');
  return Number(/^Pss:\s+(\d+) kB$/m.exec(text)?.[1] ?? 0) * 1024;
}

/** Finds the processes that own a sandbox, even if the worker is dead: their last argument is the id of the sandbox. */
export async function findOwners(id: string): Promise<number[]> {
  const owners: number[] = [];
  for (const pid of await allPids()) {
    const line = await readProcessFile(pid, 'cmdline');
    if (line.endsWith(`\0${id}\0`)) owners.push(pid);
  }
  return owners;
}

/** Returns whether a process has pid 1 in its own namespace. */
export const isFirstProcess = async (pid: number): Promise<boolean> =>
  /^NSpid:(?:\t\d+)+\t1$/m.test(await readProcessFile(pid, 'status'));

/** Returns the host's pid of process 1 of a sandbox; null if process 1 has ended. */
export async function findInit(id: string): Promise<number | null> {
  for (const pid of await findOwners(id)) {
    if (await isFirstProcess(pid)) return pid;
  }
  return null;
}
