/**
 * The kernel's memory counts of a control group: processes that the out-of-memory killer took there, and how often the group was
 * at its limit. The kernel counts a kill in the victim's group, also when the job or pod around it, or the machine, had no
 * memory left. Only the full group counts that it was full.
 * Sources: Linux, Documentation/admin-guide/cgroup-v2.rst (memory.events) and cgroup-v1/memory.rst (memory.oom_control,
 * memory.max_usage_in_bytes).
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

/** Processes killed for memory so far; null where the kernel does not count them, or the group is gone. */
export const readKills = async ({ folder, version }: MemoryGroup): Promise<number | null> =>
  count(
    /^oom_kill (\d+)$/m,
    await read(join(folder, version === 2 ? 'memory.events' : 'memory.oom_control')),
  );

/**
 * Whether the group was ever at its own limit, even if only until the kernel dropped cached files; null where the kernel does
 * not count it.
 */
export async function readWasFull({ folder, version }: MemoryGroup): Promise<boolean | null> {
  if (version === 2) {
    const times = count(/^max (\d+)$/m, await read(join(folder, 'memory.events')));
    return times === null ? null : times > 0;
  }
  // memory.failcnt stays 0 where memory with swap has a limit too: the kernel checks that limit first and does not count it.
  const [peak, limit] = await Promise.all(
    ['memory.max_usage_in_bytes', 'memory.limit_in_bytes'].map(async (file) =>
      count(/^(\d+)$/m, await read(join(folder, file))),
    ),
  );
  return peak == null || limit == null ? null : peak >= limit * NEARLY;
}

/**
 * Throws RolloutFailure `node_memory` when a process in the sandbox was killed for memory and the sandbox was never at its own
 * limit: the worker's job or pod, or the machine, had none left. The code in the sandbox is not judged by that.
 */
export async function requireOwnKills(container: Pick<Container, 'oomKills' | 'wasFull'>): Promise<void> {
  if (!(await container.oomKills().catch(() => null))) return;
  if ((await container.wasFull().catch(() => null)) !== false) return;
  throw new RolloutFailure(
    'node_memory',
    "a process of a sandbox was killed for memory below the sandbox's own limit: the machine, or the job or pod of this worker, has less memory than its sandboxes use (lower concurrency, or raise rollout_memory_bytes)",
  );
}
