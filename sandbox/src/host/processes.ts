/** Ends the processes of a dry run, which have a mark in their environment. */

import { readdir, readFile, readlink, realpath } from 'node:fs/promises';
import { linearBackoff, poll } from '@swefarm/shared';
import { killQuietly } from '../namespaces/processes.ts';

export const CONTAINER_MARK = 'SWEFARM_CONTAINER';
const ROUNDS = 20;

/**
 * Kills the processes with the mark of container `id` until none remains.
 * @param folder the container's folder: a process without an environment belongs to the container if it works there
 */
export async function killMarked(id: string, folder: string): Promise<void> {
  const home = await realpath(folder).catch(() => folder);
  const killAll = async (): Promise<boolean> => {
    const pids = await marked(id, home);
    for (const pid of pids) killQuietly(pid);
    return pids.length === 0;
  };
  await poll(killAll, { pauseMs: linearBackoff(10), tries: ROUNDS });
}

/**
 * Finds the processes with the mark. A process without an environment (during exec, or started by `env -i`) is identified by its
 * working folder. A zombie has neither.
 */
async function marked(id: string, folder: string): Promise<number[]> {
  const mark = `${CONTAINER_MARK}=${id}\0`;
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => null);
      if (environment === null) return null;
      const isOurs = environment === '' ? await worksIn(pid, folder) : environment.includes(mark);
      return isOurs ? Number(pid) : null;
    }),
  );
  return found.filter((pid) => pid !== null);
}

async function worksIn(pid: string, folder: string): Promise<boolean> {
  const workdir = await readlink(`/proc/${pid}/cwd`).catch(() => '');
  return workdir === folder || workdir.startsWith(`${folder}/`);
}
