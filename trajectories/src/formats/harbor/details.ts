/** Makes `agent_result.rollout_details` of Harbor: ids of the whole prompt and of the answer, for each turn of each line. */
import type { Trajectory, WholeLine } from '@swefarm/shared';
import { chosenLines, type LineChoice } from '../../export/lines.ts';

/** Log-probability that replaces -Infinity, which JSON does not have. */
export const IMPOSSIBLE = -1e9;

export type RolloutDetail = {
  prompt_token_ids: number[][];
  completion_token_ids: number[][];
  logprobs: number[][];
};

/** Returns the details of the lines, the main line first; null if a turn has no token ids. */
export function detailsOf(trajectory: Trajectory, choice: LineChoice): RolloutDetail[] | null {
  const details = chosenLines(trajectory, choice).map(detailOf);
  return details.every((detail) => detail !== null) ? details : null;
}

function detailOf({ turns }: WholeLine): RolloutDetail | null {
  const detail: RolloutDetail = { prompt_token_ids: [], completion_token_ids: [], logprobs: [] };
  let known: number[] = [];
  for (const { tokens } of turns) {
    if (tokens === null) return null;
    const prompt = [...known.slice(0, tokens.prefix_length), ...tokens.prompt_suffix];
    const completion = [...tokens.generation];
    detail.prompt_token_ids.push(prompt);
    detail.completion_token_ids.push(completion);
    detail.logprobs.push(
      Array.from(tokens.log_probs, (value) => (Number.isFinite(value) ? value : IMPOSSIBLE)),
    );
    known = [...prompt, ...completion];
  }
  return detail;
}
