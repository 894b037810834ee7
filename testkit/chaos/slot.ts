/** A slot of the farm for one process, which is replaced when it is killed, as a scheduler would do. */
import { sleep } from '@swefarm/shared';
import type { Started } from '../src/launchers/commands.ts';
import { untilListens } from '../src/launchers/listens.ts';

export type Slot<More extends unknown[] = []> = {
  current(): Started;
  /** Number of processes that were started in this slot. */
  starts(): number;
  start(...more: More): void;
  /** Kills the process with SIGKILL, and starts another one after `downMs`. */
  replace(downMs: number, ...more: More): Promise<void>;
  /** Sends SIGTERM and returns the exit code. */
  drain(): Promise<number | string>;
  /** Output of all processes of this slot. */
  log(): string;
  kill(): void;
  /** Processes that this slot has killed or drained. */
  readonly told: ReadonlySet<Started>;
};

/** @param begin starts the process of this number, from 1 */
export function openSlot<More extends unknown[] = []>(
  begin: (start: number, ...more: More) => Started,
): Slot<More> {
  const all: Started[] = [];
  const told = new Set<Started>();
  const current = (): Started => {
    const last = all.at(-1);
    if (last) return last;
    throw new Error('no process was started in this slot');
  };
  const kill = (): void => {
    const last = all.at(-1);
    if (!last) return;
    told.add(last);
    // SIGKILL also ends a stopped process.
    last.kill('SIGKILL');
  };
  const start = (...more: More): void => void all.push(begin(all.length + 1, ...more));
  return {
    ...{ current, start, kill, told },
    starts: () => all.length,
    async replace(downMs, ...more) {
      kill();
      await current().exit;
      if (downMs > 0) await sleep(downMs);
      start(...more);
    },
    async drain() {
      told.add(current());
      // A process that has just started does not handle the signal yet.
      await untilListens(current());
      return await current().stop();
    },
    log: () => all.map((started) => started.stdout() + started.stderr()).join('\n'),
  };
}
