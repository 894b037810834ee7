/** How fast a policy answers one rollout: it tells an endpoint that is slow from a model that thinks long. */
import type { ModelReply } from '@swefarm/shared';

export type Throughput = {
  /** Tokens that came, and the seconds that they took; an answer of which nothing came is in neither. */
  sums(): { tokens: number; seconds: number };
  /** A whole answer. `streamedTokens`: those of a stream that told neither ids nor usage. */
  addAnswer(
    reply: Pick<ModelReply, 'generation_token_ids' | 'usage'>,
    seconds: number,
    streamedTokens: number,
  ): void;
  add(tokens: number, seconds: number): void;
};

export function createThroughput(): Throughput {
  const sums = { tokens: 0, seconds: 0 };
  const add = (tokens: number, seconds: number): void => {
    if (tokens === 0) return;
    sums.tokens += tokens;
    sums.seconds += seconds;
  };
  return {
    sums: () => ({ ...sums }),
    addAnswer({ generation_token_ids: ids, usage }, seconds, streamedTokens) {
      add(ids?.length ?? usage?.completion_tokens ?? streamedTokens, seconds);
    },
    add,
  };
}
