/**
 * Reads the kernel's memory counters of a control group. A kill counts in the victim's group, even if the job, the pod or the machine
 * had no memory left. Sources: Linux, Documentation/admin-guide/cgroup-v2.rst (memory.events) and cgroup-v1/memory.rst
 * (memory.oom_control, memory.max_usage_in_bytes).
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RolloutFailure } from '@swefarm/shared';
import type { Container } from './runtime.ts';

export type MemoryGroup = { folder: string; version: 1 | 2 };

/** Share of the limit at which a group counts as full: the kernel charges pages in batches, so the recorded peak may be lower. */
const NEARLY = 0.99;

const read = (path: string): Promise<string> => readFile(path, 'latin1').catch(() => '');
const count = (pattern: RegExp, text: string): number | null => {
  const found = pattern.exec(text)?.[1];
  return found === undefined ? null : Number(found);
};

/** Returns the number of processes killed for memory; null if the kernel does not count kills, or the group is gone. */
export const readKills = async ({ folder, version }: MemoryGroup): Promise<number | null> =>
  count(
    /^oom_kill (\d+)$/m,
    await read(join(folder, version === 2 ? 'memory.events' : 'memory.oom_control')),
  );

/**
 * Returns whether the group ever reached its own limit, even if the kernel then dropped cached files; null if the kernel does not count
 * this.
 */
export async function readWasFull({ folder, version }: MemoryGroup): Promise<boolean | null> {
  if (version === 2) {
    const times = count(/^max (\d+)$/m, await read(join(folder, 'memory.events')));
    return times === null ? null : times > 0;
  }
  // memory.failcnt is not used: it stays 0 if memory with swap has a limit too, because the kernel checks that limit first.
  const [peak, limit] = await Promise.all(
    ['memory.max_usage_in_bytes', 'memory.limit_in_bytes'].map(async (file) =>
      count(/^(\d+)$/m, await read(join(folder, file))),
    ),
  );
  return peak == null || limit == null ? null : peak >= limit * NEARLY;
}

/**
 * Throws RolloutFailure `node_memory` if a process in the sandbox was killed for memory although the sandbox never reached its own
 * limit: the worker's job or pod, or the machine, had no memory left. The code is not to blame.
 */
export async function requireOwnKills(container: Pick<Container, 'oomKills' | 'wasFull'>): Promise<void> {
  if (!(await container.oomKills().catch(() => null))) return;
  if ((await container.wasFull().catch(() => null)) !== false) return;
  throw new RolloutFailure(
    'node_memory',
    "a process of a sandbox was killed for memory below the sandbox's own limit: the machine, or the job or pod of this worker, has less memory than its sandboxes use (lower concurrency, or raise rollout_memory_bytes)",
  );
}
