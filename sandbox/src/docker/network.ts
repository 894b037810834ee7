/** Finds the network namespace of an engine's container, if this process shares the host with the engine. */
import { type FileHandle, open } from 'node:fs/promises';
import type { Network } from '../listening/listen.ts';
import { readProcessFile } from '../namespaces/processes.ts';

/** Returns null if this process does not see the container's first process, or may not inspect it. */
export async function networkOf(id: string, first: number | null): Promise<Network | null> {
  if (first === null) return null;
  // Root enters every network; another user enters only networks of own user namespaces (an engine without root).
  const names = process.getuid?.() === 0 ? ['net'] : ['user', 'net'];
  const files: FileHandle[] = [];
  try {
    for (const name of names) files.push(await open(`/proc/${first}/ns/${name}`, 'r'));
    // The open files stay the same when the process ends, so the check comes after the opening.
    if (!(await belongsTo(id, first))) throw new Error('a process of something else');
  } catch {
    await Promise.all(files.map((file) => file.close()));
    return null;
  }
  const options = names.map((name, at) => `--${name}=/proc/${process.pid}/fd/${files[at]?.fd}`);
  return {
    enter: [...options, ...(names.includes('user') ? ['--preserve-credentials'] : [])],
    [Symbol.dispose]: () => {
      for (const file of files) file.close().catch(() => undefined);
    },
  };
}

/**
 * Returns whether a process is the first process of a container. An engine in another process namespace has its own pids, which denote other
 * processes here. Without control groups, only the environment that the engine gave the process names the container.
 */
async function belongsTo(id: string, pid: number): Promise<boolean> {
  if ((await readProcessFile(pid, 'cgroup')).includes(id)) return true;
  return `\0${await readProcessFile(pid, 'environ')}`.includes(`\0HOSTNAME=${id.slice(0, 12)}\0`);
}
