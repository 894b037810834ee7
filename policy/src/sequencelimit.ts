/** Computes the token limit of one answer from the limits of the run and the context of the model. */
import type { TokenLimit } from '@swefarm/shared';
import { PromptTooLongError } from './endpoint/errors.ts';

export type TokenLimits = {
  /** The run's limit on tokens of prompt and answer; null: none. */
  contextLimit: number | null;
  /** The run's limit on tokens after the first prompt; null: none. */
  sequenceBudget: number | null;
  /** The server's limit on prompt and answer (`max_model_len`); null when the server does not report it. */
  modelLength: () => Promise<number | null>;
};

export const NO_LIMITS: TokenLimits = {
  contextLimit: null,
  sequenceBudget: null,
  modelLength: async () => null,
};

export type SequenceLimit = { tokens: number; of: TokenLimit };

/** Returns the smallest limit on tokens of prompt and answer; null: no limit. `first`: number of tokens of the first prompt. */
export async function sequenceLimit(
  { contextLimit, sequenceBudget, modelLength }: TokenLimits,
  first: number,
): Promise<SequenceLimit | null> {
  const limits: [number | null, TokenLimit][] = [
    [sequenceBudget === null ? null : first + sequenceBudget, 'max_sequence_tokens'],
    [contextLimit, 'context_limit'],
    [await modelLength(), 'endpoint'],
  ];
  const known = limits.flatMap(([tokens, of]) => (tokens === null ? [] : [{ tokens, of }]));
  return known.reduce<SequenceLimit | null>(
    (least, one) => (least && least.tokens <= one.tokens ? least : one),
    null,
  );
}

/** Returns `max_tokens` for a prompt of `prompt` tokens; null: no limit. Throws PromptTooLongError if no token is left. */
export function maxTokensAfter(
  prompt: number,
  limit: SequenceLimit | null,
  wanted: number | null,
): number | null {
  if (limit === null) return wanted;
  const { tokens, of } = limit;
  if (prompt >= tokens) {
    throw new PromptTooLongError(
      `the prompt has ${prompt} tokens, and prompt and answer may have ${tokens} (${of})`,
      of,
    );
  }
  return Math.min(wanted ?? Number.POSITIVE_INFINITY, tokens - prompt);
}
