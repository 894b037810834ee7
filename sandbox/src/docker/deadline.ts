/** Time limits for calls of an engine: code in a container can make its engine wait, and must not make the worker wait. */

import { readdir, readFile } from 'node:fs/promises';
import { waitAtMost } from '@swefarm/shared';
import { killQuietly, readNamespace } from '../namespaces/processes.ts';

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
 * Kills the processes of a container without its engine; returns how many. Kills none where this process does not see the host's
 * processes, or may not end them.
 * @param id the whole one: a part of it may be part of another container's, of any engine or runtime, and then nobody is killed
 */
export async function killWithoutEngine(id: string, name = /^/): Promise<number> {
  if (!WHOLE_ID.test(id)) return 0;
  const own = await readNamespace(process.pid, 'pid');
  let killed = 0;
  for (const pid of (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry)).map(Number)) {
    const of = (file: string) => readFile(`/proc/${pid}/${file}`, 'latin1').catch(() => '');
    if (!(await of('cgroup')).includes(id) || !name.test(await of('comm'))) continue;
    // A process that serves a container from outside may be in its control group.
    if ((await readNamespace(pid, 'pid')) === own) continue;
    try {
      if (killQuietly(pid)) killed++;
    } catch {
      // It belongs to another user: a worker without root cannot help its engine here.
    }
  }
  return killed;
}
