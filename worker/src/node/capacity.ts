/** Computes how many rollouts this node runs by default: as many as its cores, memory and disk allow. */
import { availableParallelism, totalmem } from 'node:os';
import type { WorkerConfig } from '@swefarm/shared';

type Resource = 'cpus' | 'memory_bytes' | 'disk_bytes';
type Declared = Pick<WorkerConfig, 'concurrency' | `${'node' | 'rollout'}_${Resource}`>;

/** Returns at least 1. `freeBytes`: free space of the disk where sandboxes write; null: no limit. */
export function slotsOf(config: Declared, freeBytes: number | null): number {
  if (config.concurrency !== 'auto') return config.concurrency;
  const cpus = config.node_cpus === 'auto' ? availableParallelism() : config.node_cpus;
  const memory = nodeMemory(config);
  const disk = config.node_disk_bytes === 'auto' ? freeBytes : config.node_disk_bytes;
  const slots = Math.min(
    cpus / config.rollout_cpus,
    memory / config.rollout_memory_bytes,
    disk === null ? Number.POSITIVE_INFINITY : disk / config.rollout_disk_bytes,
  );
  return Math.max(1, Math.floor(slots));
}

/** Returns the bytes of memory for all sandboxes of the node; `auto`: those of the machine or of this process's control group. */
export const nodeMemory = ({ node_memory_bytes }: Pick<Declared, 'node_memory_bytes'>): number =>
  node_memory_bytes === 'auto'
    ? Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY)
    : node_memory_bytes;
