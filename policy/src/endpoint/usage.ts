/** The token counts of an answer. They are untrusted and summed into results, so odd counts are rounded or dropped. */

export type Usage = { prompt_tokens: number; completion_tokens: number };

/** A higher count is meaningless. */
const MOST_TOKENS = 1e12;

/** Null for anything but a pair of counts. */
export function parseUsage(value: unknown): Usage | null {
  const counts = value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : {};
  const prompt_tokens = count(counts.prompt_tokens);
  const completion_tokens = count(counts.completion_tokens);
  return prompt_tokens === null || completion_tokens === null ? null : { prompt_tokens, completion_tokens };
}

const count = (value: unknown): number | null =>
  typeof value === 'number' && value >= 0 && value <= MOST_TOKENS ? Math.round(value) : null;
