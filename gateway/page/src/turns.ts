/** A trajectory for the page: the prompt, then each turn with answer and observations. */
import type { LiveTurn, Message } from '@swefarm/shared';
import type { PageTrajectory, PageTurn } from '../../src/page/data.ts';

export type ShownTurn = {
  /** Position of the turn, from 0. */
  index: number;
  turn: PageTurn | Omit<LiveTurn, 'messages'>;
  answer: Message | null;
  /** Observations and format errors that follow the answer. */
  seen: Message[];
};

export type Shown = { given: Message[]; turns: ShownTurn[] };

export function shownTurns({ messages, turns }: PageTrajectory): Shown {
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

/** Returns the prompt and the turns of the latest attempt; the prompt is empty if the first turn is missing. */
export function shownLive(all: readonly LiveTurn[]): Shown {
  const attempt = Math.max(0, ...all.map((one) => one.attempt));
  const turns = all.filter((one) => one.attempt === attempt);
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

/** Returns the index of the first turn whose commands differ; null if the commands of one rollout are a prefix of the other's. */
export function parting(one: readonly ShownTurn[] = [], other: readonly ShownTurn[] = []): number | null {
  for (let at = 0; at < Math.min(one.length, other.length); at++) {
    if (commandsOf(one[at]) !== commandsOf(other[at])) return at;
  }
  return null;
}

const commandsOf = (shown: ShownTurn | undefined): string =>
  JSON.stringify(shown?.turn.commands.map(({ command }) => command) ?? []);
