/**
 * Publishes the turns of a running rollout to watchers. The rollout does not wait for the writes. Only one write runs at a time. A failed
 * write is not retried; the next write includes the changes of the meantime.
 */
import { type Clock, errorMessage, type Live, type Trajectory, type Turn } from '@swefarm/shared';
import type { Logger } from 'pino';
import { createLiveTurns } from './liveturns.ts';

type LiveDeps = {
  live: Live;
  clock: Pick<Clock, 'now'>;
  worker: string;
  node: string;
  /** Maximum number of latest turns that are published; 0: none. */
  mostTurns: number;
  log: Logger;
};

export type LiveTrace = ReturnType<typeof startLive>;

export function startLive(deps: LiveDeps, rolloutId: string, attempt: number) {
  const { live, clock, worker, node, mostTurns, log } = deps;
  const claimed_at = clock.now();
  const turns = createLiveTurns(attempt, mostTurns, () => clock.now());
  let stage = 'starting';
  let dirty = false;
  let over = mostTurns === 0;
  let writing: Promise<void> = Promise.resolve();
  const failed = (what: string) => (error: unknown) => log.debug({ err: errorMessage(error) }, what);

  const write = async (): Promise<void> => {
    while (dirty && !over) {
      dirty = false;
      const at = clock.now();
      const state = { rollout_id: rolloutId, attempt, worker, node, stage, claimed_at };
      const latest = turns.take();
      try {
        const marked = live.mark({ ...state, turns: turns.count(), at });
        await Promise.all([marked, ...latest.turns.map((turn) => live.turn(rolloutId, turn, mostTurns))]);
      } catch (error) {
        latest.giveBack();
        throw error;
      }
    }
  };
  const changed = (): void => {
    if (over || dirty) return;
    dirty = true;
    writing = writing.then(write).catch(failed('live turns not written'));
  };
  changed();
  return {
    stage(name: string): void {
      stage = name;
      changed();
    },
    /** Publishes the new turns of the trajectory. */
    turns(next: Trajectory): void {
      turns.extend(next);
      changed();
    },
    /** Publishes one turn of an agent with several lines. */
    turnOfLine(next: Trajectory, turn: Turn): void {
      if (!over) turns.add(next, turn);
      changed();
    },
    /** Publishes the remaining turns and removes the state of the rollout. Nothing is sent afterwards. */
    async end(): Promise<void> {
      if (over) return;
      over = true;
      await writing;
      const last = turns.take().turns.map((turn) => live.turn(rolloutId, turn, mostTurns));
      await Promise.all([...last, live.end(worker, rolloutId)]).catch(
        failed('live turns not removed: they expire'),
      );
    },
  };
}
