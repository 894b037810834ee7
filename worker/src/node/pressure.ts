/** Measured reasons not to claim more work: the artifact budget, this node's disk and memory, and the event loop's lag. */
import { readFile, statfs } from 'node:fs/promises';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { freeFiles, SCRATCH } from '@swefarm/sandbox';
import { type ArtifactStore, errorMessage, ownFolder } from '@swefarm/shared';

/** Claiming stops when less than this share of the artifact budget is free, or this many bytes; it resumes at twice that. */
const BUDGET_FREE_SHARE = 0.05;
const BUDGET_FREE_BYTES = 4 * 1024 ** 2;
const DISK_STOP_BYTES = 1024 ** 3;
/** Claiming stops with fewer inodes free than this, or than this share of them. */
const DISK_STOP_FILES = 100_000;
const DISK_STOP_FILES_SHARE = 0.05;
const LAG_STOP_MS = 1_000;
/** Resolution of the timer that measures the delay; an idle loop shows exactly this delay. */
const RESOLUTION_MS = 20;

export type Pressure = Disposable & {
  /** One line for people, or null when more work may be claimed. */
  reason(): Promise<string | null>;
  /** 99th percentile of the event loop's delay since the last call of {@link reason}, in seconds. */
  lagSeconds(): number;
  /** Disk of the scratch folder, as measured by the last call of {@link reason}. */
  disk(): { freeBytes: number; sizeBytes: number };
};

export type PressureDeps = {
  artifacts: ArtifactStore;
  scratchDir: string;
  /** Claiming stops with less memory available, and resumes at twice that. 0: no limit. */
  memoryReserveBytes: number;
};

export function watchPressure({ artifacts, scratchDir, memoryReserveBytes }: PressureDeps): Pressure {
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
    // A node's folders can disappear at any moment, and reappear with another owner.
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
  let starved = false;
  const memoryReason = async (): Promise<string | null> => {
    const available = availableBytes(await readFile('/proc/meminfo', 'latin1').catch(() => ''));
    if (available === null) return null;
    starved = available < memoryReserveBytes * (starved ? 2 : 1);
    return starved ? `memory: ${available} bytes are available on the node` : null;
  };
  return {
    async reason() {
      const ms = Math.max(0, delay.percentile(99) / 1e6 - RESOLUTION_MS);
      lag = ms / 1000;
      delay.reset();
      const full = await diskReason();
      if (ms > LAG_STOP_MS) return `event loop: p99 delay ${Math.round(ms)} ms`;
      return (await memoryReason()) ?? (await budgetReason()) ?? full;
    },
    lagSeconds: () => lag,
    disk: () => disk,
    [Symbol.dispose]: () => void delay.disable(),
  };
}

/** Memory that the kernel can give to new work without swapping, from the text of /proc/meminfo; null when it is not there. */
export function availableBytes(meminfo: string): number | null {
  const kilobytes = /^MemAvailable:\s+(\d+) kB$/m.exec(meminfo)?.[1];
  return kilobytes === undefined ? null : Number(kilobytes) * 1024;
}
