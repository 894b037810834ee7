/** Time limits for calls of an engine: code in a container can make its engine wait, and must not make the worker wait. */

import { waitAtMost } from '@swefarm/shared';
import { killQuietly, membersBy, readNamespace, readProcessFile } from '../namespaces/processes.ts';

/** Default timeout of a call. An engine on a loaded disk is slow. */
const ANSWER_MS = 120_000;
const LATE = 'ETIMEDOUT';
/** A container id of full length. */
const WHOLE_ID = /^[0-9a-f]{64}$/;
/** Names of the processes that engines start in a container, until they become the command. */
export const NOT_YET_COMMAND = /^(runc|crun)/;

/** Returns the result of the call. Rejects with code ETIMEDOUT after `answerMs`; the engine may still complete the call. */
export async function inTime<T>(call: Promise<T>, answerMs = ANSWER_MS): Promise<T> {
  const ending = await waitAtMost(call, answerMs);
  if (ending.by === 'itself') return ending.value;
  throw Object.assign(new Error(`the engine did not answer in ${answerMs / 1000} s`), { code: LATE });
}

export const isLate = (error: unknown): boolean => (error as { code?: unknown } | null)?.code === LATE;

/**
 * Returns the host's pids of a container's processes, found by control group and then by process namespace, which a starting command
 * enters first. Empty if this process does not see the host's processes.
 * @param id full id, because a part of it may match another container
 */
export async function membersOf(id: string): Promise<number[]> {
  if (!WHOLE_ID.test(id)) return [];
  const own = await readNamespace(process.pid, 'pid');
  const members: number[] = [];
  for (const [namespace, pids] of await membersBy('pid')) {
    // An engine's helper outside of a container may be in the container's control group.
    if (namespace === own) continue;
    for (const pid of pids) {
      if (!(await readProcessFile(pid, 'cgroup')).includes(id)) continue;
      members.push(...pids);
      break;
    }
  }
  return members;
}

/** Kills the processes of a container without its engine; returns the number. @param name kills only processes with a matching name */
export async function killWithoutEngine(id: string, name?: RegExp): Promise<number> {
  let killed = 0;
  for (const pid of await membersOf(id)) {
    if (name === undefined || name.test(await readProcessFile(pid, 'comm'))) killed += killIfOwn(pid);
  }
  return killed;
}

/** Returns 1 if the signal was sent, else 0. */
export function killIfOwn(pid: number): number {
  try {
    return killQuietly(pid) ? 1 : 0;
  } catch {
    // The process belongs to another user, and this worker is not root.
    return 0;
  }
}
