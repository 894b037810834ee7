/** What one request asks for beside its messages: the most tokens of its answer, held to the room that is left, and its seed. */

import type { PolicyConfig } from '../records/runconfig.ts';
import { effectiveSampling, turnSeed } from '../records/sampling.ts';
import type { Message, RequestedSampling } from '../records/trajectory.ts';
import { ContextOverflowError } from './endpoint/errors.ts';
import { maxTokensAfter, sequenceLimit, type TokenLimits } from './sequencelimit.ts';

/** Whose talk it is, and who bounds it. */
export type TurnClientDeps = { rolloutId: string; limits: TokenLimits };

export type TurnSampling = {
  /** In chat the length of the prompt is the server's to count. */
  forChat(messages: readonly Message[]): RequestedSampling;
  /** Throws NoRoom when the prompt leaves none. */
  forPrompt(messages: readonly Message[], prompt: number): Promise<RequestedSampling>;
};

export function createTurnSampling(
  config: PolicyConfig,
  { rolloutId, limits }: TurnClientDeps,
): TurnSampling {
  const { max_tokens: wanted, seed } = effectiveSampling(config);
  const seedOf = (messages: readonly Message[]): Pick<RequestedSampling, 'seed'> => {
    if (seed === undefined) return {};
    const turn = messages.filter(({ role }) => role === 'assistant').length + 1;
    return { seed: turnSeed(seed, rolloutId, turn) };
  };
  let first: number | null = null;
  return {
    forChat: (messages) => ({
      ...(wanted === undefined ? {} : { max_tokens: wanted }),
      ...seedOf(messages),
    }),
    async forPrompt(messages, prompt) {
      first ??= prompt;
      const room = maxTokensAfter(prompt, await sequenceLimit(limits, first), wanted ?? null);
      return { max_tokens: room, ...seedOf(messages) };
    },
  };
}

/**
 * Sends, and once more with less when the endpoint says that the answer asked for does not fit. `prompt`: its length where it is
 * known. A server that does not tell how much is left is asked for all there is, which it knows itself.
 */
export async function sendHeldToLimit<T>(
  asked: RequestedSampling,
  send: (asked: RequestedSampling) => Promise<T>,
  prompt: number | null,
): Promise<[answer: T, asked: RequestedSampling]> {
  try {
    return [await send(asked), asked];
  } catch (error) {
    if (!(error instanceof ContextOverflowError)) throw error;
    const less = smallerMaxTokens(asked.max_tokens, error, prompt);
    if (less === undefined) throw error;
    const smaller = { ...asked, max_tokens: less };
    return [await send(smaller), smaller];
  }
}

/** Undefined: there is nothing less to ask for. */
function smallerMaxTokens(
  most: number | null | undefined,
  { overflow: { limit, room } }: ContextOverflowError,
  prompt: number | null,
): number | null | undefined {
  if (most === undefined || most === null) return undefined;
  const left = room ?? (limit === null || prompt === null ? null : limit - prompt);
  // A completions endpoint must be told a number.
  if (left === null) return prompt === null ? null : undefined;
  return left >= 1 && left < most ? left : undefined;
}
