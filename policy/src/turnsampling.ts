/** Computes the sampling settings of one request: the seed, and `max_tokens`, bounded by the tokens that the context has left. */

import type { PolicyConfig, RequestedSampling, TokenLimit } from '@swefarm/shared';
import { effectiveSampling, turnSeed } from '@swefarm/shared';
import { ContextOverflowError, PromptTooLongError } from './endpoint/errors.ts';

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

/**
 * Token limits of a turn, and the rollout id, from which seeds are derived. `model` returns the model of the next request: a trainer may name
 * a model for each version. Without `model`, the configured model is used.
 */
export type TurnLimits = { rolloutId: string; limits: TokenLimits; model?: () => string };

/** The answer of a request: its number, from 1, and the most tokens that the caller wants (null: any number). */
export type SampledTurn = { answer: number; maxTokens: number | null };

export type TurnSampling = {
  /** Returns the settings of a chat request, where only the server knows the length of the prompt. */
  forChat(turn: SampledTurn): RequestedSampling;
  /**
   * Returns the settings for a prompt of `promptTokens` tokens, in a conversation whose first prompt has `firstPrompt` tokens. Throws
   * PromptTooLongError if no token is left.
   */
  forPrompt(turn: SampledTurn, promptTokens: number, firstPrompt: number): Promise<RequestedSampling>;
};

export function createTurnSampling(config: PolicyConfig, { rolloutId, limits }: TurnLimits): TurnSampling {
  const { max_tokens: most, seed } = effectiveSampling(config);
  const seedOf = ({ answer }: SampledTurn): Pick<RequestedSampling, 'seed'> =>
    seed === undefined ? {} : { seed: turnSeed(seed, rolloutId, answer) };
  const wantedIn = ({ maxTokens }: SampledTurn): number | null =>
    maxTokens === null ? (most ?? null) : Math.min(most ?? maxTokens, maxTokens);
  return {
    forChat(turn) {
      const wanted = wantedIn(turn);
      return { ...(wanted === null ? {} : { max_tokens: wanted }), ...seedOf(turn) };
    },
    async forPrompt(turn, promptTokens, firstPrompt) {
      const limit = await sequenceLimit(limits, firstPrompt);
      return { max_tokens: maxTokensAfter(promptTokens, limit, wantedIn(turn)), ...seedOf(turn) };
    },
  };
}

/**
 * Sends a request. Repeats it once with fewer tokens if the endpoint reports that the requested answer exceeds the context. `promptTokens`:
 * null if unknown; the repeated request then has no limit if the server does not report how many tokens are left.
 */
export async function sendWithinLimit<T>(
  asked: RequestedSampling,
  send: (asked: RequestedSampling) => Promise<T>,
  promptTokens: number | null,
): Promise<[answer: T, asked: RequestedSampling]> {
  try {
    return [await send(asked), asked];
  } catch (error) {
    if (!(error instanceof ContextOverflowError)) throw error;
    const fewer = smallerMaxTokens(asked.max_tokens, error, promptTokens);
    if (fewer === undefined) throw error;
    const smaller = { ...asked, max_tokens: fewer };
    return [await send(smaller), smaller];
  }
}

function smallerMaxTokens(
  most: number | null | undefined,
  { overflow: { limit, room } }: ContextOverflowError,
  promptTokens: number | null,
): number | null | undefined {
  if (most === undefined || most === null) return undefined;
  const left = room ?? (limit === null || promptTokens === null ? null : limit - promptTokens);
  // Only a chat request may omit `max_tokens`.
  if (left === null) return promptTokens === null ? null : undefined;
  return left >= 1 && left < most ? left : undefined;
}

type SequenceLimit = { tokens: number; of: TokenLimit };

/** Returns the smallest limit on tokens of prompt and answer; null: no limit. `first`: number of tokens of the first prompt. */
async function sequenceLimit(
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
function maxTokensAfter(prompt: number, limit: SequenceLimit | null, wanted: number | null): number | null {
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
