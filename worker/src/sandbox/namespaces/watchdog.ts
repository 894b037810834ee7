/**
 * Limits for nodes where no control groups can be made: once a second the processes of all sandboxes are counted and
 * weighed, and what is over its limit is killed, first a process, then the sandbox. Disk is always limited this way, beside it.
 */
import { createSemaphore } from '@swefarm/shared';
import { OWN_PROCESSES } from './cgroups.ts';
import { diskUse, type Measure } from './diskuse.ts';
import { killQuietly, membersBy, parentsOfDead, proportionalBytes, residentBytes } from './processes.ts';

const TICK_MS = 1_000;
/** While something is over its limit. */
const FAST_TICK_MS = 100;
/** So many times the limit within a second is no mistake. */
const BOMB = 2;
const DISK_EVERY_MS = 10_000;
/** Sandboxes measured side by side. */
const DISK_AT_ONCE = 4;

export type WatchedSandbox = {
  /** `pid:[…]`. */
  namespace: string;
  init: number;
  /** Null: limited otherwise, or not at all. */
  memoryBytes: number | null;
  pids: number | null;
  diskBytes: number | null;
  /** Measured for the disk limit. */
  folder: string;
  onMemoryKill(): void;
  /** Kills all but process 1 in one system call: what is killed one by one forks faster. */
  killAll(): Promise<void>;
  /** Ends the whole sandbox: killing processes was not enough. */
  end(reason: 'memory' | 'pids' | 'disk'): void;
};

export type Watchdog = Disposable & {
  /** Returns what ends the watch. */
  watch(sandbox: WatchedSandbox): () => void;
};

export type WatchdogOptions = { measure?: Measure; diskEveryMs?: number };

/** The options are for tests. */
export function startWatchdog({
  measure = diskUse,
  diskEveryMs = DISK_EVERY_MS,
}: WatchdogOptions = {}): Watchdog {
  const sandboxes = new Set<WatchedSandbox>();
  const over = new Map<WatchedSandbox, number>();
  let timer: NodeJS.Timeout | null = null;
  let closed = false;

  const tick = async (): Promise<void> => {
    if ([...sandboxes].some((one) => one.memoryBytes !== null || one.pids !== null)) {
      const members = await membersBy('pid');
      for (const one of sandboxes) {
        const all = members.get(one.namespace) ?? [];
        // Over, and not yet taken from the watch: by now the number may be another sandbox's namespace.
        if (!all.includes(one.init)) continue;
        const pids = all.filter((pid) => pid !== one.init);
        const excess = (await overPids(one, pids)) || (await overMemory(one, pids));
        if (!excess) over.delete(one);
        else {
          const times = (over.get(one) ?? 0) + 1;
          over.set(one, times);
          // Killing one after the other does not catch up with it.
          if (times > 20) one.end(excess);
        }
      }
    }
  };

  // Not in the tick: a sandbox of a million files takes minutes to measure, and the others' memory does not wait.
  const slots = createSemaphore(DISK_AT_ONCE);
  const measuring = new Set<WatchedSandbox>();
  const measureAll = (): void => {
    for (const one of sandboxes) {
      if (one.diskBytes === null || measuring.has(one)) continue;
      const limit = one.diskBytes;
      measuring.add(one);
      slots
        .run(() => measure(one.folder))
        .then((used) => {
          if (used !== null && used > limit && sandboxes.has(one)) one.end('disk');
        })
        // What could not be measured now is measured the next time.
        .catch(() => undefined)
        .finally(() => measuring.delete(one));
    }
  };
  const diskTimer = setInterval(measureAll, diskEveryMs);
  diskTimer.unref();

  const schedule = (): void => {
    if (timer || closed || sandboxes.size === 0) return;
    timer = setTimeout(
      () => {
        tick()
          // A reading that failed is made again in a second; nothing is killed on a guess.
          .catch(() => undefined)
          .finally(() => {
            timer = null;
            schedule();
          });
      },
      over.size > 0 ? FAST_TICK_MS : TICK_MS,
    );
    timer.unref();
  };

  return {
    watch(sandbox) {
      sandboxes.add(sandbox);
      schedule();
      return () => {
        sandboxes.delete(sandbox);
        over.delete(sandbox);
      };
    },
    [Symbol.dispose]() {
      closed = true;
      if (timer) clearTimeout(timer);
      clearInterval(diskTimer);
      sandboxes.clear();
    },
  };
}

/** Kills the youngest, which are likeliest to be what multiplies; all of them, when there are so many that those left would catch up. */
async function overPids(one: WatchedSandbox, pids: number[]): Promise<'pids' | null> {
  if (one.pids === null || pids.length <= one.pids + OWN_PROCESSES) return null;
  if (pids.length > one.pids * BOMB) {
    await one.killAll();
    return 'pids';
  }
  // The dead count too, and go only with the parent that does not ask for them.
  const negligent = parentsOfDead(pids);
  negligent.delete(one.init);
  const victims = negligent.size > 0 ? [...negligent] : pids.slice(one.pids);
  for (const pid of victims) killQuietly(pid);
  return 'pids';
}

/** Kills the largest until the rest is within the limit, as the kernel would; all at once, for a job's own limit does not wait. */
async function overMemory(one: WatchedSandbox, pids: number[]): Promise<'memory' | null> {
  if (one.memoryBytes === null) return null;
  const rough = await Promise.all(pids.map(residentBytes));
  if (sum(rough) <= one.memoryBytes) return null;
  const exact = await Promise.all(pids.map(proportionalBytes));
  let left = sum(exact);
  if (left <= one.memoryBytes) return null;
  const largestFirst = pids
    .map((pid, i) => ({ pid, bytes: exact[i] ?? 0 }))
    .sort((a, b) => b.bytes - a.bytes);
  for (const { pid, bytes } of largestFirst) {
    if (left <= one.memoryBytes) break;
    if (killQuietly(pid)) one.onMemoryKill();
    left -= bytes;
  }
  return 'memory';
}

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);
