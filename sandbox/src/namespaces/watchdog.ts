/**
 * Limits for nodes where no control groups can be made: once a second it counts the processes and the memory of all sandboxes. Over a
 * limit it kills single processes first, then the sandbox. Disk is always limited this way, at a slower pace.
 */
import { createSemaphore } from '@swefarm/shared';
import { OWN_PROCESSES } from './cgroups.ts';
import { folderSize, type Measure } from './foldersize.ts';
import { killQuietly, membersBy, parentsOfDead, proportionalBytes, residentBytes } from './processes.ts';

const TICK_MS = 1_000;
/** Pace while a sandbox is over its limit. */
const FAST_TICK_MS = 100;
/** This many times the limit is a fork bomb, not a mistake. */
const BOMB = 2;
/** More than this many ticks in a row over a limit end the sandbox. */
const MOST_KILLS = 20;
const DISK_EVERY_MS = 10_000;
/** How many sandboxes are measured at a time. */
const DISK_AT_ONCE = 4;

export type WatchedSandbox = {
  /** `pid:[…]`. */
  namespace: string;
  init: number;
  /** Null: limited by other means, or not at all. */
  memoryBytes: number | null;
  pids: number | null;
  diskBytes: number | null;
  /** The folder that is measured for the disk limit. */
  folder: string;
  onMemoryKill(): void;
  /** Kills all but process 1 in one system call: processes that are killed one by one fork faster. */
  killAll(): Promise<void>;
  /** Ends the whole sandbox, because killing processes was not enough. */
  end(reason: 'memory' | 'pids' | 'disk'): void;
};

export type Watchdog = Disposable & {
  /** Returns a function that ends the watch. */
  watch(sandbox: WatchedSandbox): () => void;
};

export type WatchdogOptions = { measure?: Measure; diskEveryMs?: number };

/** The options are for tests. */
export const startWatchdog = (options: WatchdogOptions = {}): Watchdog => new LimitsWatchdog(options);

class LimitsWatchdog implements Watchdog {
  readonly #measure: Measure;
  readonly #sandboxes = new Set<WatchedSandbox>();
  /** How many times in a row each was found over a limit. */
  readonly #over = new Map<WatchedSandbox, number>();
  readonly #measuring = new Set<WatchedSandbox>();
  readonly #measurements = createSemaphore(DISK_AT_ONCE);
  readonly #diskTimer: NodeJS.Timeout;
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor({ measure = folderSize, diskEveryMs = DISK_EVERY_MS }: WatchdogOptions) {
    this.#measure = measure;
    // Not in the tick: measuring a sandbox of a million files takes minutes, and the memory of the others does not wait.
    this.#diskTimer = setInterval(() => this.#measureDisks(), diskEveryMs);
    this.#diskTimer.unref();
  }

  watch(sandbox: WatchedSandbox): () => void {
    this.#sandboxes.add(sandbox);
    this.#schedule();
    return () => {
      this.#sandboxes.delete(sandbox);
      this.#over.delete(sandbox);
    };
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    if (this.#timer) clearTimeout(this.#timer);
    clearInterval(this.#diskTimer);
    this.#sandboxes.clear();
  }

  #schedule(): void {
    if (this.#timer || this.#isClosed || this.#sandboxes.size === 0) return;
    const next = (): void => {
      this.#tick()
        // A failed reading is repeated in a second; nothing is killed on a guess.
        .catch(() => undefined)
        .finally(() => {
          this.#timer = null;
          this.#schedule();
        });
    };
    this.#timer = setTimeout(next, this.#over.size > 0 ? FAST_TICK_MS : TICK_MS);
    this.#timer.unref();
  }

  async #tick(): Promise<void> {
    if (![...this.#sandboxes].some((one) => one.memoryBytes !== null || one.pids !== null)) return;
    const members = await membersBy('pid');
    for (const one of this.#sandboxes) {
      const all = members.get(one.namespace) ?? [];
      // When it has ended and is still watched, its number may by now belong to another sandbox's namespace.
      if (all.includes(one.init)) await this.#enforce(one, all);
    }
  }

  async #enforce(one: WatchedSandbox, members: readonly number[]): Promise<void> {
    const pids = members.filter((pid) => pid !== one.init);
    const excess = (await overPids(one, pids)) || (await overMemory(one, pids));
    if (!excess) {
      this.#over.delete(one);
      return;
    }
    const times = (this.#over.get(one) ?? 0) + 1;
    this.#over.set(one, times);
    // Killing single processes does not keep up with it.
    if (times > MOST_KILLS) one.end(excess);
  }

  #measureDisks(): void {
    for (const one of this.#sandboxes) {
      const limit = one.diskBytes;
      if (limit === null || this.#measuring.has(one)) continue;
      this.#measuring.add(one);
      this.#measurements
        .run(() => this.#measure(one.folder))
        .then((used) => {
          if (used !== null && used > limit && this.#sandboxes.has(one)) one.end('disk');
        })
        // A failed measurement is repeated the next time.
        .catch(() => undefined)
        .finally(() => this.#measuring.delete(one));
    }
  }
}

/** Kills the youngest, which most likely multiply; kills all when there are so many that the rest would replace them at once. */
async function overPids(one: WatchedSandbox, pids: number[]): Promise<'pids' | null> {
  if (one.pids === null || pids.length <= one.pids + OWN_PROCESSES) return null;
  if (pids.length > one.pids * BOMB) {
    await one.killAll();
    return 'pids';
  }
  // Zombies count too, and disappear only with the parent that does not reap them.
  const negligent = parentsOfDead(pids);
  negligent.delete(one.init);
  const victims = negligent.size > 0 ? [...negligent] : pids.slice(one.pids);
  for (const pid of victims) killQuietly(pid);
  return 'pids';
}

/** Kills the largest until the rest is within the limit, as the kernel would; in one pass, because the limit of the batch job does not wait. */
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
