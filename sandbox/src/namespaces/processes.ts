/**
 * Finds the processes of sandboxes from the host: of a sandbox by its process namespace, of an exec by its mount namespace. A
 * process can neither leave nor fake them.
 */

import { readdir, readFile, readlink } from 'node:fs/promises';
import { poll, readProcessStat } from '@swefarm/shared';

export type Namespace = 'pid' | 'mnt';

/** `pid:[4026532182]` of a process; null when it has ended or this user may not look at it. */
export const readNamespace = (pid: number, kind: Namespace): Promise<string | null> =>
  readlink(`/proc/${pid}/ns/${kind}`).catch(() => null);

/** The text of a file of a process; empty when it has ended or this user may not read it. */
export const readProcessFile = (
  pid: number,
  file: 'cgroup' | 'comm' | 'stat' | 'statm' | 'status' | 'cmdline' | 'smaps_rollup',
) => readFile(`/proc/${pid}/${file}`, 'latin1').catch(() => '');

export async function allPids(): Promise<number[]> {
  return (await readdir('/proc')).map(Number).filter((pid) => Number.isInteger(pid) && pid > 0);
}

/** Live processes by namespace, in one pass over the process table. */
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
 * Kills the processes in a namespace of a sandbox, except its process 1, until none is left. False when some exist after many
 * rounds (a fork bomb). Kills none once the sandbox has ended: the kernel gives the number of its namespace to the next new one,
 * which may be another sandbox's. While the sandbox is alive this process has its namespaces open, so the numbers are not
 * reused.
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

/** False when the process has already ended. */
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

/** Resident bytes, fast: shared pages count in every process. 0 for an ended process. */
export async function residentBytes(pid: number): Promise<number> {
  const text = await readProcessFile(pid, 'statm');
  return Number(text.split(' ')[1] ?? 0) * PAGE_BYTES;
}

/** Proportional bytes, slow: shared pages are divided among their processes. */
export async function proportionalBytes(pid: number): Promise<number> {
  const text = await readProcessFile(pid, 'smaps_rollup');
  return Number(/^Pss:\s+(\d+) kB$/m.exec(text)?.[1] ?? 0) * 1024;
}

/** Processes that own a sandbox, also of a dead worker: the sandbox's id is their last argument. */
export async function findOwners(id: string): Promise<number[]> {
  const owners: number[] = [];
  for (const pid of await allPids()) {
    const line = await readProcessFile(pid, 'cmdline');
    if (line.endsWith(`\0${id}\0`)) owners.push(pid);
  }
  return owners;
}

/** Process 1 of a sandbox, by its id on the host; null when it has ended. */
export async function findInit(id: string): Promise<number | null> {
  for (const pid of await findOwners(id)) {
    const status = await readProcessFile(pid, 'status');
    if (/^NSpid:\t\d+(?:\t\d+)*\t1$/m.test(status)) return pid;
  }
  return null;
}
