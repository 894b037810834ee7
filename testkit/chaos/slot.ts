/** A place of the farm that a fresh process takes when the old one is killed, as a scheduler would give it. */
import { sleep } from '@swefarm/shared';
import type { Started } from '../src/launchers/commands.ts';
import { untilListens } from '../src/launchers/listens.ts';

export type Slot<More extends unknown[] = []> = {
  current(): Started;
  /** How many processes had the place. */
  starts(): number;
  start(...more: More): void;
  /** kill -9, and a fresh process after `downMs`. */
  replace(downMs: number, ...more: More): Promise<void>;
  /** SIGTERM; the exit code. */
  drain(): Promise<number | string>;
  /** Everything that processes in this place printed. */
  log(): string;
  kill(): void;
  /** Processes that were told to end. */
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
    throw new Error('nothing was started here');
  };
  const kill = (): void => {
    const last = all.at(-1);
    if (!last) return;
    told.add(last);
    // One that stands still is killed all the same.
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
      // One that was started a moment ago has no code loaded that could handle a signal.
      await untilListens(current());
      return await current().stop();
    },
    log: () => all.map((started) => started.stdout() + started.stderr()).join('\n'),
  };
}
