/**
 * Stores the token ids of the server once: for each turn, the new suffix of the prompt and the generation. Trainers require that each
 * prompt begins with all earlier prompts and generations.
 */

import type { Turn, TurnTokens } from '@swefarm/shared';
import { RolloutFailure } from '@swefarm/shared';
import { type ExpertLedger, type ExpertMode, recordExperts } from './expertrows.ts';
import type { ExpertsFound } from './experts.ts';
import { joinIds } from './ids.ts';

/** Thrown for a prompt that does not continue the earlier tokens. */
export class TokenBreak extends RolloutFailure {
  /** `seen`: the expected token id. `got`: the received token id; null if the prompt ends. */
  readonly seen: number;
  readonly got: number | null;

  constructor(message: string, seen: number, got: number | null) {
    super('policy_tokens', message);
    this.seen = seen;
    this.got = got;
  }
}

/** All earlier tokens. The arrays in `pieces` are shared with the stored turns. */
export type TokenLedger = {
  pieces: Int32Array[];
  length: number;
  contiguous: boolean;
  experts: ExpertLedger | null;
};

export const openLedger = (): TokenLedger => ({ pieces: [], length: 0, contiguous: true, experts: null });

/** Tokens of one answer, as the endpoint returned them. A field is null if the endpoint did not return it. */
export type ReplyTokens = {
  prompt_token_ids: Int32Array | null;
  generation_token_ids: Int32Array | null;
  generation_log_probs: Float32Array | null;
  usage: Turn['usage'];
  /** View into the bytes of the answer. Delete this field from a stored reply, because the view retains the bytes. */
  routed_experts?: ExpertsFound | null;
};

/**
 * Adds the tokens of one answer to the ledger and returns the tokens to store; null if the tokens are unusable. A prompt that does not
 * continue the earlier tokens is stored from the first difference. `turn` counts from 1.
 *
 * @throws RolloutFailure `policy_tokens` for missing or inconsistent tokens if they or experts are required, for discontiguous tokens if
 * `required`, and for unusable experts
 */
export function recordTokens(
  ledger: TokenLedger,
  reply: ReplyTokens,
  turn: number,
  required: boolean,
  experts: ExpertMode = 'drop',
): TurnTokens | null {
  const {
    prompt_token_ids: prompt,
    generation_token_ids: generation,
    generation_log_probs: logProbs,
  } = reply;
  const flaw = flawOf(reply);
  if ((required || experts === 'require') && flaw !== null)
    throw new RolloutFailure('policy_tokens', `turn ${turn}: ${flaw}`);
  if (!prompt || !generation || logProbs?.length !== generation.length) return null;

  const { prefix, seen } = commonPrefix(ledger, prompt);
  if (seen !== null) {
    const got = prompt[prefix] ?? null;
    const why = `token ${prefix} of ${ledger.length} was ${seen}, is ${got ?? 'the end of the prompt'}`;
    if (required)
      throw new TokenBreak(`turn ${turn}: the prompt does not continue what was seen: ${why}`, seen, got);
    ledger.contiguous = false;
    truncate(ledger, prefix);
  }
  // The suffix is a copy, because a view would retain the whole prompt of each turn in memory.
  const suffix = prompt.slice(prefix);
  ledger.pieces.push(suffix, generation);
  ledger.length += suffix.length + generation.length;
  const position = { turn, total: ledger.length, prefix };
  const routed = recordExperts(ledger.experts, reply.routed_experts ?? null, experts, position);
  if (routed) ledger.experts = routed.ledger;
  return {
    ...{ prefix_length: prefix, prompt_suffix: suffix, generation, log_probs: logProbs },
    ...(routed ? { routed_experts: routed.stored } : {}),
  };
}

function flawOf({
  prompt_token_ids: prompt,
  generation_token_ids: generation,
  generation_log_probs: logProbs,
  usage,
}: ReplyTokens): string | null {
  if (!prompt?.length) return 'the endpoint returned no prompt token ids';
  if (!generation?.length) return 'the endpoint returned no generated token ids';
  if (!logProbs) return 'the endpoint returned no usable log-probabilities';
  if (generation.length !== logProbs.length) {
    return `${generation.length} generated tokens but ${logProbs.length} log-probabilities`;
  }
  if (usage && usage.completion_tokens !== generation.length) {
    return `${generation.length} generated tokens but usage reports ${usage.completion_tokens}`;
  }
  if (usage && usage.prompt_tokens !== prompt.length) {
    return `${prompt.length} prompt tokens but usage reports ${usage.prompt_tokens}`;
  }
  return null;
}

/** Returns the number of earlier tokens with which the prompt begins, and the next earlier token; null: the prompt has all of them. */
function commonPrefix({ pieces }: TokenLedger, prompt: Int32Array): { prefix: number; seen: number | null } {
  let prefix = 0;
  for (const piece of pieces) {
    for (let i = 0; i < piece.length; i++, prefix++) {
      const seen = piece[i] as number;
      if (prefix >= prompt.length || seen !== prompt[prefix]) return { prefix, seen };
    }
  }
  return { prefix, seen: null };
}

function truncate(ledger: TokenLedger, length: number): void {
  const pieces: Int32Array[] = [];
  let left = length;
  for (const piece of ledger.pieces) {
    if (left <= 0) break;
    pieces.push(left < piece.length ? piece.subarray(0, left) : piece);
    left -= piece.length;
  }
  ledger.pieces = pieces;
  ledger.length = length;
  if (ledger.experts && ledger.experts.known > length) ledger.experts = { ...ledger.experts, known: length };
}

/** Yields the whole prompt and generation of each turn that has tokens. */
export function* cumulative(
  turns: Iterable<TurnTokens | null>,
): Generator<{ prompt: Int32Array; generation: Int32Array; logProbs: Float32Array }> {
  let seen = new Int32Array(0);
  for (const turn of turns) {
    if (turn === null) continue;
    const prompt = joinIds(seen.subarray(0, turn.prefix_length), turn.prompt_suffix);
    seen = joinIds(prompt, turn.generation);
    yield { prompt, generation: turn.generation, logProbs: turn.log_probs };
  }
}
