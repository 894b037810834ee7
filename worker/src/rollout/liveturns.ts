/** Selects the turns of a running rollout that watchers have not got yet, and shortens them to what is shown. */
import { withNamedPictures } from '@swefarm/policy';
import {
  allTurns,
  type LiveTurn,
  type Message,
  mainLineId,
  type Trajectory,
  type Turn,
} from '@swefarm/shared';

/** @param most number of latest turns that are shown; older ones are left out */
export function createLiveTurns(attempt: number, most: number, now: () => number) {
  let trajectory: Trajectory | null = null;
  let taken = 0;
  /** Turns of an agent with several lines, and the number of all of them so far. */
  const queued: LiveTurn[] = [];
  let ofLines = 0;
  return {
    count: (): number => trajectory?.turns.length ?? ofLines,
    /** Sets the trajectory of an agent with one line. */
    extend(next: Trajectory): void {
      trajectory = next;
    },
    /** Adds one turn of any line, with the messages of its line since the answer before. */
    add(next: Trajectory, turn: Turn): void {
      ofLines = allTurns(next).length;
      queued.push(turnInLine(next, turn, { attempt, turn: ofLines, at: now() }));
    },
    /** Returns the latest turns that were not taken yet. `giveBack`: they are taken again. */
    take(): { turns: LiveTurn[]; giveBack(): void } {
      const before = taken;
      const lines = queued.splice(0).slice(-most);
      const giveBack = (): void => {
        taken = before;
        queued.unshift(...lines);
      };
      if (trajectory === null) return { turns: lines, giveBack };
      const done = trajectory.turns.length;
      const turns: LiveTurn[] = [];
      for (taken = Math.max(taken, done - most); taken < done; taken++)
        turns.push(turnOf(trajectory, taken, attempt, now()));
      return { turns: [...lines, ...turns], giveBack };
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
