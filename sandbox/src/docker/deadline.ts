/** Time limits for calls of an engine: code in a container can make its engine wait, and must not make the worker wait. */

import { waitAtMost } from '@swefarm/shared';
import { allPids, killQuietly, readNamespace, readProcessFile } from '../namespaces/processes.ts';

/** An engine on a loaded disk is slow. */
const ANSWER_MS = 120_000;
const LATE = 'ETIMEDOUT';
/** As an engine gives it. */
const WHOLE_ID = /^[0-9a-f]{64}$/;
/** Names of the processes that engines start in a container, until they become the command. */
export const NOT_YET_COMMAND = /^(runc|crun)/;

/** Settles as the call does; rejects when the call takes longer, while the engine goes on with it. */
export async function inTime<T>(call: Promise<T>, answerMs = ANSWER_MS): Promise<T> {
  const ending = await waitAtMost(call, answerMs);
  if (ending.by === 'itself') return ending.value;
  throw Object.assign(new Error(`the engine did not answer in ${answerMs / 1000} s`), { code: LATE });
}

export const isLate = (error: unknown): boolean => (error as { code?: unknown } | null)?.code === LATE;

/**
 * Processes of a container on the host, by its control group and by the process namespace that is found there: the process with which an
 * engine starts a command enters the namespace first. None where this process does not see the host's processes.
 * @param id the whole one: a part of it may be part of another container's, of any engine or runtime
 */
export async function membersOf(id: string): Promise<number[]> {
  if (!WHOLE_ID.test(id)) return [];
  const own = await readNamespace(process.pid, 'pid');
  const inside = new Set<string>();
  const others: { pid: number; namespace: string }[] = [];
  for (const pid of await allPids()) {
    const namespace = await readNamespace(pid, 'pid');
    // A process that serves a container from outside may be in its control group.
    if (namespace === null || namespace === own) continue;
    others.push({ pid, namespace });
    if ((await readProcessFile(pid, 'cgroup')).includes(id)) inside.add(namespace);
  }
  return others.filter(({ namespace }) => inside.has(namespace)).map(({ pid }) => pid);
}

/** Kills the processes of a container without its engine, or those of a name; returns how many. @param id as for {@link membersOf} */
export async function killWithoutEngine(id: string, name?: RegExp): Promise<number> {
  let killed = 0;
  for (const pid of await membersOf(id)) {
    if (name === undefined || name.test(await readProcessFile(pid, 'comm'))) killed += killIfOwn(pid);
  }
  return killed;
}

/** 1 when the signal was sent. */
export function killIfOwn(pid: number): number {
  try {
    return killQuietly(pid) ? 1 : 0;
  } catch {
    // It belongs to another user: a worker without root cannot help its engine here.
    return 0;
  }
}
