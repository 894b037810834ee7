/** Selects the lines of a rollout that an export writes, and counts the others. */
import {
  linesOf,
  type Message,
  ownTurns,
  type Result,
  type Trajectory,
  type Turn,
  type WholeLine,
} from '@swefarm/shared';

/** `main`: the main line only. `all`: every line that is trained on. */
export type LineChoice = 'main' | 'all';

/** Turns and sampled tokens of lines that an export omits. */
export type LeftOut = { lines: number; turns: number; tokens: number };

/** Returns the lines that an export writes, the main line first. */
export const chosenLines = (trajectory: Trajectory, choice: LineChoice): WholeLine[] =>
  choice === 'main' ? linesOf(trajectory).slice(0, 1) : linesOf(trajectory).filter(({ masked }) => !masked);

/** Returns what an export with this choice omits, by reason: the kind of a masked line, or `main line only`. */
export function leftOutOf(trajectory: Trajectory, choice: LineChoice): Record<string, LeftOut> {
  if (!trajectory.lines?.length) return {};
  const chosen = new Set(chosenLines(trajectory, choice).map(({ id }) => id));
  const counts: Record<string, LeftOut> = {};
  for (const line of linesOf(trajectory).filter(({ id }) => !chosen.has(id))) {
    const reason = line.masked ?? 'main line only';
    const { lines, turns, tokens } = counts[reason] ?? { lines: 0, turns: 0, tokens: 0 };
    counts[reason] = {
      lines: lines + 1,
      turns: turns + ownTurns(line).length,
      tokens: tokens + sampledTokens(line),
    };
  }
  return counts;
}

/** Returns the number of sampled tokens of a line's own turns, from the ids or the endpoint's usage. */
export const sampledTokens = (line: WholeLine): number =>
  ownTurns(line).reduce(
    (sum, { tokens, usage }) => sum + (tokens?.generation.length ?? usage?.completion_tokens ?? 0),
    0,
  );

/** Returns the sums of the tokens that the endpoint reported. A turn without usage adds nothing. */
export function usageOf(turns: readonly (Turn | null)[]): Result['tokens'] {
  const sum = (key: 'prompt_tokens' | 'completion_tokens'): number =>
    turns.reduce((total, turn) => total + (turn?.usage?.[key] ?? 0), 0);
  return { prompt: sum('prompt_tokens'), completion: sum('completion_tokens') };
}

/** Facts of a line in exported rows. `shared_turns`: turns at its start that another line has. */
export const lineFacts = ({ id, kind, from, shared }: WholeLine) => ({
  line: id,
  line_kind: kind,
  line_from: from?.line ?? null,
  shared_turns: shared.turns,
});

/**
 * Returns a function that adds `weight: 0` to each assistant's message that the line does not train: an answer that another line has, and a
 * text that the agent wrote itself. The agents of the farm write no answers, so their messages have no weights unless they are branches.
 * `isMasked`: no answer is trained on.
 */
export function weighted<Written extends object>(
  line: WholeLine,
  write: (message: Message) => Written,
  isMasked = false,
): (message: Message, at: number) => Written & { weight?: 0 } {
  const own = new Set(ownTurns(line).map(({ message }) => message));
  const hasOthers = isProgram(line) || line.shared.turns > 0;
  return (message, at) =>
    message.role === 'assistant' && (isMasked || (hasOthers && !own.has(at)))
      ? { ...write(message), weight: 0 }
      : write(message);
}

/** Returns whether an agent that comes as a program asked for the answers of the line. */
export const isProgram = ({ turns }: Pick<WholeLine, 'turns'>): boolean =>
  turns.some(({ request }) => request !== undefined);
