/** How fast a policy answers one rollout: this distinguishes a slow endpoint from a model that thinks for long. */
import type { ModelReply } from '@swefarm/policy';

export type Throughput = {
  /** Tokens received and the seconds they took; an answer that brought no token counts in neither. */
  sums(): { tokens: number; seconds: number };
  /** Adds a whole answer. `streamedTokens`: the count for a stream that sent neither ids nor usage. */
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
