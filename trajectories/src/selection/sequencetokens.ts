/** The length of a conversation in tokens of its model. */
import type { Trajectory } from '@swefarm/shared';

/** The last prompt and its answer, as the endpoint counted them or as stored ids; null where neither is known. */
export function sequenceTokens(trajectory: Trajectory | null): number | null {
  const last = trajectory?.turns.at(-1);
  if (!last) return null;
  if (last.usage) return last.usage.prompt_tokens + last.usage.completion_tokens;
  if (!last.tokens) return null;
  const { prefix_length, prompt_suffix, generation } = last.tokens;
  return prefix_length + prompt_suffix.length + generation.length;
}
