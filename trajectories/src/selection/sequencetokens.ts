import type { Trajectory } from '@swefarm/shared';

/** Returns the tokens of the last prompt and its answer, from the endpoint's usage or the stored ids; null if both are missing. */
export function sequenceTokens(trajectory: Trajectory | null): number | null {
  const last = trajectory?.turns.at(-1);
  if (!last) return null;
  if (last.usage) return last.usage.prompt_tokens + last.usage.completion_tokens;
  if (!last.tokens) return null;
  const { prefix_length, prompt_suffix, generation } = last.tokens;
  return prefix_length + prompt_suffix.length + generation.length;
}
