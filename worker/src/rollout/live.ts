/**
 * Publishes the turns of a running rollout to watchers. The rollout does not wait for the writes. Only one write runs at a time. A failed
 * write is not retried; the next write includes the changes of the meantime.
 */
import { withNamedPictures } from '@swefarm/policy';
import { type Clock, errorMessage, type Live, type LiveTurn, type Trajectory } from '@swefarm/shared';
import type { Logger } from 'pino';

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
  let stage = 'starting';
  let trajectory: Trajectory | null = null;
  let sent = 0;
  let dirty = false;
  let over = mostTurns === 0;
  let writing: Promise<void> = Promise.resolve();
  const failed = (what: string) => (error: unknown) => log.debug({ err: errorMessage(error) }, what);

  const write = async (): Promise<void> => {
    while (dirty && !over) {
      dirty = false;
      const done = trajectory?.turns.length ?? 0;
      const at = clock.now();
      const mark = { rollout_id: rolloutId, attempt, worker, node, stage, claimed_at, turns: done, at };
      const before = sent;
      try {
        await Promise.all([live.mark(mark), ...writeNewTurns()]);
      } catch (error) {
        sent = before;
        throw error;
      }
    }
  };
  const writeNewTurns = (): Promise<void>[] => {
    if (trajectory === null) return [];
    const writes: Promise<void>[] = [];
    const done = trajectory.turns.length;
    for (sent = Math.max(sent, done - mostTurns); sent < done; sent++)
      writes.push(live.turn(rolloutId, turnOf(trajectory, sent, attempt, clock.now()), mostTurns));
    return writes;
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
      trajectory = next;
      changed();
    },
    /** Publishes the remaining turns and removes the state of the rollout. Nothing is sent afterwards. */
    async end(): Promise<void> {
      if (over) return;
      over = true;
      await writing;
      const last = Promise.all([...writeNewTurns(), live.end(worker, rolloutId)]);
      await last.catch(failed('live turns not removed: they expire'));
    },
  };
}

function turnOf({ turns, messages }: Trajectory, index: number, attempt: number, at: number): LiveTurn {
  const turn = turns[index];
  if (!turn) throw new RangeError(`there is no turn ${index}`);
  const from = index === 0 ? 0 : turn.message;
  const { finish_reason, model_seconds, usage, policy_version, commands } = turn;
  return {
    attempt,
    turn: index + 1,
    at,
    // The messages name their pictures without the data, which Redis already has.
    messages: messages.slice(from, turns[index + 1]?.message).map(withNamedPictures),
    answer: turn.message - from,
    finish_reason,
    model_seconds,
    usage,
    policy_version,
    commands,
  };
}
