/** The lines of a rollout for the page: the prompt of each, then each turn with answer and observations. */
import type { LineKind, LiveTurn, Message } from '@swefarm/shared';
import type { PageLine, PageTrajectory, PageTurn } from '../../src/page/data.ts';

export type ShownTurn = {
  /** Position of the turn, from 0. */
  index: number;
  turn: PageTurn | Omit<LiveTurn, 'messages'>;
  answer: Message | null;
  /** Observations and format errors that follow the answer. */
  seen: Message[];
};

export type Shown = { given: Message[]; turns: ShownTurn[] };

/** A line of the rollout. `from` and `masked` are those of the stored line; null for the main line and while the rollout runs. */
export type ShownLine = Shown & { id: string; kind: LineKind } & Pick<PageLine, 'from' | 'masked'>;

/** Returns the main line, then the other lines. */
export const shownLines = (trajectory: PageTrajectory): [ShownLine, ...ShownLine[]] => [
  { id: trajectory.line ?? 'L1', kind: 'main', from: null, masked: null, ...shownTurns(trajectory) },
  ...(trajectory.lines ?? []).map(({ id, kind, from, masked, ...line }) => ({
    ...{ id, kind, from, masked },
    ...shownTurns(line),
  })),
];

export function shownTurns({ messages, turns }: Pick<PageTrajectory, 'messages' | 'turns'>): Shown {
  return {
    given: messages.slice(0, turns[0]?.message ?? messages.length),
    turns: turns.map((turn, index) => ({
      index,
      turn,
      answer: messages[turn.message] ?? null,
      seen: messages.slice(turn.message + 1, turns[index + 1]?.message),
    })),
  };
}

/** Returns the lines of the latest attempt, each with its latest kind. An agent of the farm has one line. */
export function shownLive(all: readonly LiveTurn[]): ShownLine[] {
  const attempt = Math.max(0, ...all.map((one) => one.attempt));
  const turns = all.filter((one) => one.attempt === attempt);
  return [...Map.groupBy(turns, ({ line }) => line?.id ?? 'L1')].map(([id, own]) => {
    const kind = own.at(-1)?.line?.kind ?? 'main';
    const shown = own.some(({ line }) => line) ? liveLine(own) : liveTurns(own);
    return { id, kind, from: null, masked: null, ...shown };
  });
}

/** The messages of a turn of a line end with its answer, and begin with what followed the answer before. */
function liveLine(turns: readonly LiveTurn[]): Shown {
  const before = turns.map(({ messages, answer }) => messages.slice(0, answer));
  return {
    given: before[0] ?? [],
    turns: turns.map(({ messages, ...turn }, index) => ({
      index,
      turn,
      answer: messages[turn.answer] ?? null,
      seen: before[index + 1] ?? [],
    })),
  };
}

/** Returns the prompt and the turns; the prompt is empty if the first turn is missing. */
function liveTurns(turns: readonly LiveTurn[]): Shown {
  const [first] = turns;
  return {
    given: first?.turn === 1 ? first.messages.slice(0, first.answer) : [],
    turns: turns.map(({ messages, ...turn }) => ({
      index: turn.turn - 1,
      turn,
      answer: messages[turn.answer] ?? null,
      seen: messages.slice(turn.answer + 1),
    })),
  };
}

/** Returns the index of the first turn whose actions differ; null if the actions of one rollout are a prefix of the other's. */
export function parting(one: readonly ShownTurn[] = [], other: readonly ShownTurn[] = []): number | null {
  for (let at = 0; at < Math.min(one.length, other.length); at++) {
    if (actionsOf(one[at]) !== actionsOf(other[at])) return at;
  }
  return null;
}

const actionsOf = (shown: ShownTurn | undefined): string => JSON.stringify(shown ? actionsIn(shown) : []);

/** Returns the commands of a turn. The farm does not see the commands of an agent that comes as a program: its calls stand for them. */
export function actionsIn({ turn, answer }: ShownTurn): string[] {
  const isProgram = 'request' in turn ? turn.request !== undefined : 'line' in turn;
  if (!isProgram) return turn.commands.map(({ command }) => command);
  return (answer?.tool_calls ?? []).map(({ function: { name, arguments: args } }) => `${name} ${args}`);
}
