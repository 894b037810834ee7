/** The speed at which a policy answers one rollout: it distinguishes a slow endpoint from a model that thinks for long. */
export type Throughput = {
  /** Tokens received and the seconds they took; answers without tokens are not counted. */
  sums(): { tokens: number; seconds: number };
  add(tokens: number, seconds: number): void;
};

export function createThroughput(): Throughput {
  const sums = { tokens: 0, seconds: 0 };
  return {
    sums: () => ({ ...sums }),
    add(tokens, seconds) {
      if (tokens === 0) return;
      sums.tokens += tokens;
      sums.seconds += seconds;
    },
  };
}
