/**
 * Enforces limits where control groups cannot. Once a second, the watchdog counts the processes and the memory of all sandboxes. Above
 * a limit it kills single processes first, then the sandbox. It also enforces all disk limits, at longer intervals.
 */
import { createSemaphore } from '@swefarm/shared';
import { OWN_PROCESSES } from './cgroups.ts';
import { folderSize, type Measure } from './diskuse.ts';
import { killQuietly, membersBy, parentsOfDead, proportionalBytes, residentBytes } from './processes.ts';

const TICK_MS = 1_000;
/** Interval while a sandbox is above a limit. */
const FAST_TICK_MS = 100;
/** More processes than this multiple of the limit are a fork bomb. */
const BOMB = 2;
/** The watchdog ends a sandbox that exceeds a limit for more consecutive ticks than this. */
const MOST_KILLS = 20;
const DISK_EVERY_MS = 10_000;
const DISK_AT_ONCE = 4;

export type WatchedSandbox = {
  /** Process namespace, as `pid:[…]`. */
  namespace: string;
  init: number;
  /** Limit in bytes. A limit of null is not enforced by the watchdog. */
  memoryBytes: number | null;
  pids: number | null;
  diskBytes: number | null;
  folder: string;
  onMemoryKill(): void;
  /** Kills all processes except process 1 in one system call, because a fork bomb is faster than single kills. */
  killAll(): Promise<void>;
  /** Ends the sandbox when killing processes does not help. */
  end(reason: 'memory' | 'pids' | 'disk'): void;
};

export class Watchdog implements Disposable {
  readonly #measure: Measure;
  readonly #sandboxes = new Set<WatchedSandbox>();
  /** Number of consecutive ticks above a limit. */
  readonly #over = new Map<WatchedSandbox, number>();
  readonly #measuring = new Set<WatchedSandbox>();
  readonly #measurements = createSemaphore(DISK_AT_ONCE);
  readonly #diskTimer: NodeJS.Timeout;
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  /** Only tests pass options. */
  constructor({ measure = folderSize as Measure, diskEveryMs = DISK_EVERY_MS } = {}) {
    this.#measure = measure;
    // The timer is separate from the tick, because measuring a sandbox of a million files takes minutes.
    this.#diskTimer = setInterval(() => this.#measureDisks(), diskEveryMs);
    this.#diskTimer.unref();
  }

  /** Returns a function that ends the watch. */
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
        // The next tick repeats the checks of a failed one.
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
      // The kernel may reuse the namespace number of an ended sandbox.
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
        .catch(() => undefined)
        .finally(() => this.#measuring.delete(one));
    }
  }
}

/** Kills the youngest processes, which most likely fork. Kills all if there are so many that the others would replace them at once. */
async function overPids(one: WatchedSandbox, pids: number[]): Promise<'pids' | null> {
  if (one.pids === null || pids.length <= one.pids + OWN_PROCESSES) return null;
  if (pids.length > one.pids * BOMB) {
    await one.killAll();
    return 'pids';
  }
  // Zombies count too, and disappear only when the parent that does not reap them is killed.
  const negligent = parentsOfDead(pids);
  negligent.delete(one.init);
  const victims = negligent.size > 0 ? [...negligent] : pids.slice(one.pids);
  for (const pid of victims) killQuietly(pid);
  return 'pids';
}

/**
 * Kills the largest processes until the others are within the limit, as the kernel would. All kills happen in one pass, because the
 * batch job may soon reach its own limit.
 */
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
