/** What a recording counts, and what the recording of a training run must have. */
import { type InstalledAgent, type Line, RolloutFailure } from '@swefarm/shared';
import type { Answer } from '../lines/answer.ts';

export type LineFacts = Pick<InstalledAgent, 'lines' | 'masked' | 'whole' | 'repeated' | 'repaired'>;

export function lineFactsOf(lines: readonly Line[], answers: readonly Answer[]): LineFacts {
  const masked: Record<string, number> = {};
  for (const { masked: why, turns } of lines) if (why) masked[why] = (masked[why] ?? 0) + turns.length;
  const requests = answers.map(({ turn }) => turn.request);
  const whole = requests.filter(({ matched }) => matched !== 'continued' && matched !== 'first').length;
  const repeated = requests.reduce((sum, { repeated = 0 }) => sum + repeated, 0);
  const repaired = requests.filter(({ repaired }) => repaired).length;
  return { lines: lines.length, masked, whole, repeated, repaired };
}

/** Throws RolloutFailure `policy_tokens` if an answer is in no line, or has no ids, or if no token of the rollout is trained on. */
export function requireTrainedLines(lines: readonly Line[], answers: readonly Answer[]): void {
  const fail = (why: string): never => {
    throw new RolloutFailure('policy_tokens', why);
  };
  if (answers.length === 0) return;
  const recorded = new Set(lines.flatMap(({ turns }) => turns));
  const lost = answers.find(({ turn }) => !recorded.has(turn) || turn.tokens === null);
  if (lost) fail(`answer ${lost.number} of ${answers.length} is in no line with its token ids`);
  const trained = lines.filter(({ masked }) => masked === null).flatMap(({ turns }) => turns);
  if (trained.some(({ tokens }) => tokens && tokens.generation.length > 0)) return;
  const kinds = [...new Set(lines.map(({ kind }) => kind))].join(', ');
  fail(`no token of ${answers.length} answers is trained on: all are of lines of kind ${kinds}`);
}
