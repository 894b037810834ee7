/** Finds and ends the processes of a dry run by a mark in their environment, since nothing else groups them. */

import { readdir, readFile } from 'node:fs/promises';
import { linearBackoff, poll } from '@swefarm/shared';
import { killQuietly } from '../namespaces/processes.ts';

export const CONTAINER_MARK = 'SWEFARM_CONTAINER';
const ROUNDS = 20;

/** Kills every process with the mark of container `id`, repeatedly until none is left that could have forked meanwhile. */
export async function killMarked(id: string): Promise<void> {
  const killAll = async (): Promise<boolean> => {
    const pids = await marked(id);
    for (const pid of pids) killQuietly(pid);
    return pids.length === 0;
  };
  await poll(killAll, { pauseMs: linearBackoff(10), tries: ROUNDS });
}

/** Zombies have no environment, so they are not included. */
async function marked(id: string): Promise<number[]> {
  const mark = `${CONTAINER_MARK}=${id}\0`;
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '');
      return environment.includes(mark) ? Number(pid) : null;
    }),
  );
  return found.filter((pid) => pid !== null);
}
