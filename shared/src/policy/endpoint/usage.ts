/** What an endpoint says it billed: a stranger's numbers, made whole here or left out, since sums of them go into results. */

export type Usage = { prompt_tokens: number; completion_tokens: number };

/** More tokens than any prompt has; beyond it a number says nothing. */
const MOST_TOKENS = 1e12;

/** Null when it is not told, or is no pair of counts. */
export function parseUsage(value: unknown): Usage | null {
  const told = value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : {};
  const prompt_tokens = count(told.prompt_tokens);
  const completion_tokens = count(told.completion_tokens);
  return prompt_tokens === null || completion_tokens === null ? null : { prompt_tokens, completion_tokens };
}

const count = (value: unknown): number | null =>
  typeof value === 'number' && value >= 0 && value <= MOST_TOKENS ? Math.round(value) : null;
