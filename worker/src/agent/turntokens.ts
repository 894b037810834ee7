/** Counts the tokens of recorded turns. */
import type { Turn } from '@swefarm/shared';

/** Returns the tokens of a turn: from the usage, else from the token ids; 0 when the endpoint sends neither. */
export function tokensOf(turn: Pick<Turn, 'usage' | 'tokens'> | undefined): {
  prompt: number;
  answer: number;
} {
  if (turn?.usage) return { prompt: turn.usage.prompt_tokens, answer: turn.usage.completion_tokens };
  if (!turn?.tokens) return { prompt: 0, answer: 0 };
  const { prefix_length, prompt_suffix, generation } = turn.tokens;
  return { prompt: prefix_length + prompt_suffix.length, answer: generation.length };
}

/** Returns the tokens after the first prompt, observations included; 0 when the endpoint sends no numbers of tokens. */
export function sequenceTokens(turns: readonly Pick<Turn, 'usage' | 'tokens'>[]): number {
  const last = tokensOf(turns.at(-1));
  return last.prompt + last.answer - tokensOf(turns[0]).prompt;
}
