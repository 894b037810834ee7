/**
 * Reads the lines of a trajectory. A stored line has only the messages and turns that no other line has; readers of this file get each
 * line as a whole conversation from its first prompt.
 */
import { SwefarmError } from '../failures/errors.ts';
import type { Line, Message, ToolDefinition, Trajectory, Turn } from './trajectory.ts';

/** A line with the history that it continues. `Turn.message` counts in `messages`. */
export type WholeLine = Pick<Line, 'id' | 'kind' | 'from' | 'masked' | 'contiguous'> & {
  tools: ToolDefinition[] | undefined;
  messages: Message[];
  turns: Turn[];
  /** Number of turns and messages at the start that belong to the lines, or to the rollout, that this line continues. */
  shared: { turns: number; messages: number };
};

/** Id of the line whose messages and turns the trajectory has. */
export const mainLineId = ({ line }: Pick<Trajectory, 'line'>): string => line ?? 'L1';

type WithLines = Pick<
  Trajectory,
  'messages' | 'turns' | 'tools' | 'contiguous' | 'lines' | 'line' | 'branch_of'
>;

/**
 * Returns all lines, the main line first, then the others in the order of their first answers. A line without tools of its own has those
 * of the line that it continues. @throws SwefarmError `bad_artifact` for a line that continues an unknown line, or itself
 */
export function linesOf(trajectory: WithLines): [WholeLine, ...WholeLine[]] {
  const main = mainLine(trajectory);
  const stored = new Map((trajectory.lines ?? []).map((line) => [line.id, line]));
  const whole = new Map([[main.id, main]]);
  const find = (id: string, depth: number): WholeLine => {
    const known = whole.get(id);
    if (known) return known;
    const line = stored.get(id);
    if (!line || depth > stored.size)
      throw new SwefarmError('bad_artifact', `line ${id} of a trajectory continues no known line`);
    const made = line.from === null ? joined(line, null) : joined(line, find(line.from.line, depth + 1));
    whole.set(id, made);
    return made;
  };
  return [main, ...[...stored.keys()].map((id) => find(id, 0)).filter((line) => line !== main)];
}

const mainLine = (trajectory: WithLines): WholeLine => ({
  id: mainLineId(trajectory),
  kind: 'main',
  from: null,
  masked: null,
  tools: trajectory.tools,
  messages: trajectory.messages,
  turns: trajectory.turns,
  shared: sharedByBranch(trajectory),
  ...(trajectory.contiguous === undefined ? {} : { contiguous: trajectory.contiguous }),
});

/** A branch shares the turns of the rollout from which it branches off, up to the answer of the last of them. */
function sharedByBranch({ branch_of, turns }: WithLines): WholeLine['shared'] {
  const last = branch_of && turns[Math.min(branch_of.turn, turns.length) - 1];
  return last ? { turns: turns.indexOf(last) + 1, messages: last.message + 1 } : { turns: 0, messages: 0 };
}

function joined({ messages, turns, tools, ...line }: Line, parent: WholeLine | null): WholeLine {
  const { from } = line;
  const start = from ?? { turns: 0, messages: 0 };
  // `from` counts what the parent has itself.
  const shared = {
    turns: (parent?.shared.turns ?? 0) + start.turns,
    messages: (parent?.shared.messages ?? 0) + start.messages,
  };
  const moved = turns.map((turn) => ({ ...turn, message: turn.message + shared.messages }));
  return {
    ...line,
    tools: tools ?? parent?.tools,
    messages: [...(parent?.messages.slice(0, shared.messages) ?? []), ...messages],
    turns: [...(parent?.turns.slice(0, shared.turns) ?? []), ...moved],
    shared,
  };
}

/** Returns the turns that the line itself has, without those of the lines that it continues. */
export const ownTurns = ({ turns, shared }: WholeLine): Turn[] => turns.slice(shared.turns);

/** Returns the turns of all lines that no other rollout has. */
export const sampledTurns = (trajectory: WithLines): Turn[] =>
  allTurns(trajectory).slice(sharedByBranch(trajectory).turns);

/** Returns the turns of all lines, those of the main line first. `Turn.message` counts in the messages of the turn's own line. */
export const allTurns = ({ turns, lines = [] }: Pick<Trajectory, 'turns' | 'lines'>): Turn[] =>
  lines.length === 0 ? turns : [...turns, ...lines.flatMap((line) => line.turns)];

/** Returns each assistant's message that is the answer of a turn, of all lines. */
export const allAnswers = ({ messages, turns, lines = [] }: WithLines): Message[] =>
  [{ messages, turns }, ...lines].flatMap((line) =>
    line.turns.flatMap(({ message }) => line.messages[message] ?? []),
  );

/** Returns the last turn of the main line, or of the line that replaced it when the agent condensed its history. */
export const lastMainTurn = ({ turns, lines = [] }: Pick<Trajectory, 'turns' | 'lines'>): Turn | undefined =>
  (lines.findLast(({ kind, from }) => kind === 'main' && from === null)?.turns ?? turns).at(-1);
