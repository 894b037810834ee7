/** How fast a policy speaks, as its rollout heard it: what tells an endpoint that is slow from a model that thinks. */
import type { ModelReply } from '@swefarm/shared';

export type Sums = { tokens: number; seconds: number };
export type Throughput = ReturnType<typeof createThroughput>;

export function createThroughput() {
  let tokens = 0;
  let seconds = 0;
  return {
    /** Tokens that were heard, and the seconds that they took; an answer that was heard of in no part is in neither. */
    sums: (): Sums => ({ tokens, seconds }),
    /** `seen`: tokens of a stream that told neither ids nor usage. */
    whole({ generation_token_ids: ids, usage }: ModelReply, took: number, seen = 0): void {
      const came = ids?.length ?? usage?.completion_tokens ?? seen;
      if (came === 0) return;
      tokens += came;
      seconds += took;
    },
    /** An answer that did not come to its end. */
    unfinished(came: number, took: number): void {
      if (came === 0) return;
      tokens += came;
      seconds += took;
    },
  };
}
