/** Measures reasons not to claim work: the artifact budget, this node's disk and memory, and the lag of the event loop. */
import { readFile, statfs } from 'node:fs/promises';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { freeFiles, SCRATCH } from '@swefarm/sandbox';
import { type ArtifactStore, errorMessage, ownFolder } from '@swefarm/shared';

/** Claiming stops below this free share of the artifact budget or these free bytes, whichever is more, and resumes at twice that amount. */
const BUDGET_FREE_SHARE = 0.05;
const BUDGET_FREE_BYTES = 4 * 1024 ** 2;
const DISK_STOP_BYTES = 1024 ** 3;
/** Claiming stops below this number of free inodes or this share of all inodes, whichever is less. */
const DISK_STOP_FILES = 100_000;
const DISK_STOP_FILES_SHARE = 0.05;
const LAG_STOP_MS = 1_000;
/** Delay that an idle event loop shows, in milliseconds. */
const RESOLUTION_MS = 20;

export type Pressure = ReturnType<typeof watchPressure>;

type PressureDeps = {
  artifacts: ArtifactStore;
  scratchDir: string;
  /** Claiming stops below this available memory, and resumes at twice that amount; 0: no limit. */
  memoryReserveBytes: number;
};

export function watchPressure({ artifacts, scratchDir, memoryReserveBytes }: PressureDeps) {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  let overBudget = false;
  let lag = 0;
  let disk = { freeBytes: 0, sizeBytes: 0 };
  const budgetReason = async (): Promise<string | null> => {
    const { used_bytes, budget_bytes } = await artifacts.usage();
    const needed = Math.max(BUDGET_FREE_BYTES, budget_bytes * BUDGET_FREE_SHARE) * (overBudget ? 2 : 1);
    overBudget = budget_bytes - used_bytes < needed;
    return overBudget ? `artifact budget: ${used_bytes} of ${budget_bytes} bytes are used` : null;
  };
  const diskReason = async (): Promise<string | null> => {
    // The folder may have been removed or replaced by another user.
    const refused = await ownFolder(scratchDir, SCRATCH).then(() => null, errorMessage);
    if (refused !== null) return `disk: ${refused}`;
    const stats = await statfs(scratchDir);
    const free = stats.bavail * stats.bsize;
    disk = { freeBytes: free, sizeBytes: stats.blocks * stats.bsize };
    if (free < DISK_STOP_BYTES) return `disk: ${free} bytes are free at ${scratchDir}`;
    const files = freeFiles(stats);
    return files < Math.min(DISK_STOP_FILES, stats.files * DISK_STOP_FILES_SHARE)
      ? `disk: ${files} inodes are free at ${scratchDir}`
      : null;
  };
  let lacksMemory = false;
  const memoryReason = async (): Promise<string | null> => {
    const available = availableBytes(await readFile('/proc/meminfo', 'latin1').catch(() => ''));
    if (available === null) return null;
    lacksMemory = available < memoryReserveBytes * (lacksMemory ? 2 : 1);
    return lacksMemory ? `memory: ${available} bytes are available on the node` : null;
  };
  return {
    /** Returns in one line why no work may be claimed; null: work may be claimed. */
    async reason(): Promise<string | null> {
      const ms = Math.max(0, delay.percentile(99) / 1e6 - RESOLUTION_MS);
      lag = ms / 1000;
      delay.reset();
      const full = await diskReason();
      if (ms > LAG_STOP_MS) return `event loop: p99 delay ${Math.round(ms)} ms`;
      return (await memoryReason()) ?? (await budgetReason()) ?? full;
    },
    /** Returns the 99th percentile of the event loop's delay in seconds, as the last call of `reason` measured it. */
    lagSeconds: () => lag,
    disk: () => disk,
    [Symbol.dispose]: () => void delay.disable(),
  };
}

/** Returns the memory available without swapping, from the text of /proc/meminfo; null if the text does not show it. */
export function availableBytes(meminfo: string): number | null {
  const kilobytes = /^MemAvailable:\s+(\d+) kB$/m.exec(meminfo)?.[1];
  return kilobytes === undefined ? null : Number(kilobytes) * 1024;
}
