/** Reads the token counts of an answer. Counts are untrusted and enter sums, so fractions are rounded and invalid counts dropped. */

export type Usage = { prompt_tokens: number; completion_tokens: number };

/** Maximum plausible count. Higher counts are dropped. */
const MOST_TOKENS = 1e12;

/** Returns null for any value that is not a pair of token counts. */
export function parseUsage(value: unknown): Usage | null {
  const counts = value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : {};
  const prompt_tokens = count(counts.prompt_tokens);
  const completion_tokens = count(counts.completion_tokens);
  return prompt_tokens === null || completion_tokens === null ? null : { prompt_tokens, completion_tokens };
}

const count = (value: unknown): number | null =>
  typeof value === 'number' && value >= 0 && value <= MOST_TOKENS ? Math.round(value) : null;
