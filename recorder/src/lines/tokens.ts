/** Records the token ids of an answer after those of the answers that its request continues. */
import {
  type ExpertMode,
  openLedger,
  type ReplyTokens,
  recordTokens,
  type TokenLedger,
} from '@swefarm/policy';
import type { Turn, TurnTokens } from '@swefarm/shared';
import type { Answer } from './answer.ts';

export type TokenRule = { requireTokens: boolean; experts: ExpertMode };

export type RecordedTokens = {
  tokens: TurnTokens | null;
  experts: TokenLedger['experts'];
  /** Whether the prompt does not begin with the tokens of the answers before it. The tokens are then those of a whole prompt. */
  isCut: boolean;
};

/**
 * Returns the tokens to store with an answer. `number`: of the answer, for messages.
 *
 * @throws RolloutFailure `policy_tokens` as recordTokens()
 */
export function recordAnswerTokens(
  parent: Answer | null,
  reply: ReplyTokens,
  number: number,
  { requireTokens, experts }: TokenRule,
): RecordedTokens {
  const ledger = ledgerAfter(parent);
  const tokens = recordTokens(ledger, reply, number, requireTokens, experts);
  if (ledger.contiguous) return { tokens, experts: ledger.experts, isCut: false };
  const whole = openLedger();
  const all = recordTokens(whole, reply, number, requireTokens, experts);
  return { tokens: all, experts: whole.experts, isCut: true };
}

/** Returns the ledger after an answer. Its arrays are those of the stored turns. */
function ledgerAfter(answer: Answer | null): TokenLedger {
  const ledger = openLedger();
  if (!answer) return ledger;
  for (const { turn } of lineTo(answer)) {
    if (!turn.tokens) continue;
    const { prompt_suffix: suffix, generation } = turn.tokens;
    ledger.pieces.push(suffix, generation);
    ledger.length += suffix.length + generation.length;
  }
  ledger.experts = answer.experts;
  return ledger;
}

/** Returns the answer and those before it, the first one first. */
export function lineTo(answer: Answer | null): Answer[] {
  const line: Answer[] = [];
  for (let at = answer; at; at = at.match.parent) line.push(at);
  return line.reverse();
}

/** Returns the ids of the whole prompt of an answer; null if the answer has no ids. */
export function promptIds(answer: Answer): Int32Array | null {
  const { tokens } = answer.turn;
  if (!tokens) return null;
  const { pieces, length } = ledgerAfter(answer);
  const ids = new Int32Array(length - tokens.generation.length);
  let at = 0;
  for (const piece of pieces.slice(0, -1)) {
    ids.set(piece, at);
    at += piece.length;
  }
  return ids;
}

/** Returns the number of tokens of a turn: from its ids, else as the endpoint reported, else 0. */
export function usageOf({ tokens, usage }: Turn): { prompt_tokens: number; completion_tokens: number } {
  if (!tokens) return usage ?? { prompt_tokens: 0, completion_tokens: 0 };
  const { prefix_length: prefix, prompt_suffix: suffix, generation } = tokens;
  return { prompt_tokens: prefix + suffix.length, completion_tokens: generation.length };
}
