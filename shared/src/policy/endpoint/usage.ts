/** The token counts that an endpoint reports. They are not trusted: sums of them go into results, so that odd ones are rounded or left out. */

export type Usage = { prompt_tokens: number; completion_tokens: number };

/** More tokens than any prompt has; beyond it a number says nothing. */
const MOST_TOKENS = 1e12;

/** Null when it is missing, or is no pair of counts. */
export function parseUsage(value: unknown): Usage | null {
  const counts = value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : {};
  const prompt_tokens = count(counts.prompt_tokens);
  const completion_tokens = count(counts.completion_tokens);
  return prompt_tokens === null || completion_tokens === null ? null : { prompt_tokens, completion_tokens };
}

const count = (value: unknown): number | null =>
  typeof value === 'number' && value >= 0 && value <= MOST_TOKENS ? Math.round(value) : null;
