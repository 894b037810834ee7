/** How many tokens one answer may have: what the run allows, but no more than is left of the context. */
import type { TokenLimit } from '../records/trajectory.ts';
import { PromptTooLongError } from './endpoint/errors.ts';

/** Who knows how long a sequence may be. */
export type TokenLimits = {
  /** Tokens of prompt and answer that the run allows; null: no limit of its own. */
  contextLimit: number | null;
  /** Tokens after the first prompt that the run allows; null: no such budget. */
  sequenceBudget: number | null;
  /** The same as `contextLimit`, by the server (`max_model_len`); null when it does not tell. Asked when it is wanted. */
  modelLength: () => Promise<number | null>;
};

export const NO_LIMITS: TokenLimits = {
  contextLimit: null,
  sequenceBudget: null,
  modelLength: async () => null,
};

/** Tokens that prompt and answer may have together, and who says so. */
export type SequenceLimit = { tokens: number; of: TokenLimit };

/** The smallest after a first prompt of `first`; null when nobody tells. */
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

/**
 * What to ask for after a prompt of so many tokens; null when nothing limits it.
 *
 * @throws PromptTooLongError when the prompt leaves no token
 */
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
