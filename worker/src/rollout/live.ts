/**
 * Publishes the turns of a running rollout to watchers. The rollout does not wait for the writes. Only one write runs at a time. A failed
 * write is not retried; the next write includes the changes of the meantime.
 */
import { withNamedPictures } from '@swefarm/policy';
import {
  allTurns,
  type Clock,
  errorMessage,
  type Live,
  type LiveTurn,
  type Message,
  mainLineId,
  type Trajectory,
  type Turn,
} from '@swefarm/shared';
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
  /** Turns of an agent with several lines that are not sent yet, and the number of all of its turns. */
  let queued: LiveTurn[] = [];
  let inLines = 0;
  let sent = 0;
  let dirty = false;
  let over = mostTurns === 0;
  let writing: Promise<void> = Promise.resolve();
  const failed = (what: string) => (error: unknown) => log.debug({ err: errorMessage(error) }, what);

  const write = async (): Promise<void> => {
    while (dirty && !over) {
      dirty = false;
      const done = trajectory?.turns.length ?? inLines;
      const at = clock.now();
      const mark = { rollout_id: rolloutId, attempt, worker, node, stage, claimed_at, turns: done, at };
      const before = { sent, queued };
      try {
        await Promise.all([live.mark(mark), ...writeNewTurns()]);
      } catch (error) {
        sent = before.sent;
        queued = [...before.queued, ...queued];
        throw error;
      }
    }
  };
  const writeNewTurns = (): Promise<void>[] => {
    const writes = queued.slice(-mostTurns).map((turn) => live.turn(rolloutId, turn, mostTurns));
    queued = [];
    if (trajectory === null) return writes;
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
    /** Publishes one turn of an agent with several lines. Its messages are those of its line since the answer before. */
    turnOfLine(next: Trajectory, turn: Turn): void {
      inLines = allTurns(next).length;
      if (over) return;
      queued.push(turnInLine(next, turn, { attempt, turn: inLines, at: clock.now() }));
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
  const shown = messages.slice(from, turns[index + 1]?.message);
  return liveTurn(turn, shown, turn.message - from, { attempt, turn: index + 1, at });
}

type Numbers = Pick<LiveTurn, 'attempt' | 'turn' | 'at'>;

/** The observations of the turn are not known yet: the next turn of the line shows them. */
function turnInLine(trajectory: Trajectory, turn: Turn, numbers: Numbers): LiveTurn {
  const lines = [trajectory, ...(trajectory.lines ?? [])];
  const found = lines.find((line) => line.turns.includes(turn)) ?? trajectory;
  const { turns, messages } = found;
  const from = (turns[turns.indexOf(turn) - 1]?.message ?? -1) + 1;
  const line = 'kind' in found ? { id: found.id, kind: found.kind } : mainOf(trajectory);
  const shown = messages.slice(from, turn.message + 1);
  return { ...liveTurn(turn, shown, turn.message - from, numbers), line };
}

const mainOf = (trajectory: Trajectory) => ({ id: mainLineId(trajectory), kind: 'main' as const });

const liveTurn = (turn: Turn, shown: readonly Message[], answer: number, numbers: Numbers): LiveTurn => ({
  ...numbers,
  // The messages name their pictures without the data, which Redis already has.
  messages: shown.map(withNamedPictures),
  answer,
  finish_reason: turn.finish_reason,
  model_seconds: turn.model_seconds,
  usage: turn.usage,
  policy_version: turn.policy_version,
  commands: turn.commands,
});
