/** The limits of a rollout that the endpoint enforces, whatever the agent does. They are checked before a request goes to the policy. */
import { costOf, type Turn } from '@swefarm/shared';
import { usageOf } from '../lines/tokens.ts';
import type { RecorderOptions, RolloutOver } from '../recorder.ts';

export type Limits = ReturnType<typeof createLimits>;

export function createLimits({ limits }: Pick<RecorderOptions, 'limits'>) {
  const used = {
    turns: 0,
    wholePrompts: 0,
    promptTokens: 0,
    answerTokens: 0,
    malformed: 0,
    malformedInARow: 0,
  };
  let lastWasCut = false;
  /** Turns that requests in flight may still make. */
  let reserved = 0;
  const cost = (): number =>
    limits.cost ? costOf({ prompt: used.promptTokens, completion: used.answerTokens }, limits.cost.price) : 0;
  return {
    /** Returns the limit that forbids another request; null: none. `isWhole`: whether its prompt is rendered whole. */
    reached(isWhole: boolean): RolloutOver | null {
      if (used.malformedInARow >= limits.malformedInARow)
        return lastWasCut ? 'context_limit' : 'format_limit';
      if (used.turns + reserved >= limits.turns) return 'turn_limit';
      if (isWhole && used.wholePrompts >= limits.wholePrompts) return 'turn_limit';
      if (limits.answerTokens !== null && used.answerTokens >= limits.answerTokens) return 'turn_limit';
      return limits.cost && cost() >= limits.cost.most ? 'turn_limit' : null;
    },
    malformedAnswers: (): number => used.malformed,
    /** Reserves a turn for a request; the returned function gives back the turn. */
    reserve(isWhole: boolean): () => void {
      reserved++;
      if (isWhole) used.wholePrompts++;
      return () => {
        reserved--;
      };
    },
    /** Returns the most tokens of the next answer; null: no limit. */
    answerTokens: (wanted: number | null): number | null => {
      if (limits.answerTokens === null) return wanted;
      const left = Math.max(1, limits.answerTokens - used.answerTokens);
      return wanted === null ? left : Math.min(wanted, left);
    },
    /** Counts an answer. An answer that was cut counts as malformed. */
    count(turn: Turn, malformed: boolean): void {
      const usage = usageOf(turn);
      used.turns++;
      used.promptTokens += usage.prompt_tokens;
      used.answerTokens += usage.completion_tokens;
      lastWasCut = turn.finish_reason === 'length';
      if (malformed && !lastWasCut) used.malformed++;
      used.malformedInARow = malformed || lastWasCut ? used.malformedInARow + 1 : 0;
    },
  };
}
