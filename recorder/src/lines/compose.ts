/** Makes the trajectory of a rollout from the tree of its answers: the main line, and the other lines beside it. */
import type { Line, LineKind, Message, ToolDefinition, Trajectory, Turn } from '@swefarm/shared';
import type { Answer } from './answer.ts';
import { type Chain, chainsOf } from './chains.ts';
import { kindsOf } from './kinds.ts';

export type TrainLines = 'all' | 'main' | 'abandoned';

/** Returns the lines in the order of their first answers. Sets `message` of the answers' turns. */
export function composeLines(answers: readonly Answer[], train: TrainLines): Line[] {
  const chains = chainsOf(answers);
  const kinds = kindsOf(chains, answers);
  const ids = new Map(chains.map((chain, index) => [chain, `L${index + 1}`]));
  return chains.map((chain) => {
    const kind = kinds.get(chain) ?? 'main';
    const { tools } = chain.answers[0].asked;
    const { messages, turns } = recordOf(chain);
    const contiguous = turns.some(({ tokens }) => tokens) ? { contiguous: true } : {};
    return {
      ...{ id: ids.get(chain) as string, kind, from: originOf(chain, ids), masked: maskOf(kind, train) },
      ...(tools.length > 0 ? { tools: [...tools] as ToolDefinition[] } : {}),
      ...{ messages, turns, ...contiguous },
    };
  });
}

/** Adds the lines to the trajectory before its first turn. The first main line becomes the trajectory's own messages and turns. */
export function composeTrajectory(before: Trajectory, lines: readonly Line[]): Trajectory {
  const main = lines.find(({ kind }) => kind === 'main') ?? lines[0];
  if (!main) return { ...before };
  const { id, tools, messages, turns, contiguous } = main;
  const others = lines.filter((line) => line !== main);
  return {
    ...before,
    ...(tools ? { tools } : {}),
    ...{ messages, turns, ...(contiguous === undefined ? {} : { contiguous }) },
    ...(others.length > 0 ? { lines: others } : {}),
    ...(id === 'L1' ? {} : { line: id }),
  };
}

function recordOf({ answers }: Chain): { messages: Message[]; turns: Turn[] } {
  const messages: Message[] = [];
  const turns = answers.map(({ match, message, turn }) => {
    messages.push(...match.tail, message);
    turn.message = messages.length - 1;
    return turn;
  });
  return { messages, turns };
}

function originOf({ from }: Chain, ids: ReadonlyMap<Chain, string>): Line['from'] {
  if (!from) return null;
  const { chain, answer } = from;
  // The turns of that line are composed before those of this one, so their messages are known.
  const turns = chain.answers.indexOf(answer) + 1;
  return { line: ids.get(chain) as string, turns, messages: answer.turn.message + 1 };
}

function maskOf(kind: LineKind, train: TrainLines): Line['masked'] {
  switch (kind) {
    case 'main':
      return null;
    case 'subagent':
    case 'summary':
      return train === 'main' ? kind : null;
    case 'abandoned':
      return train === 'abandoned' ? null : kind;
    case 'side':
    case 'foreign':
      return kind;
  }
}
