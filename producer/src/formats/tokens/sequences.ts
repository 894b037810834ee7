/** The token sequences of a trajectory: all tokens of a conversation in a row, and which of them the policy generated. */
import type { Trajectory } from '@swefarm/shared';

export type TokenSequence = {
  ids: Int32Array;
  /** 1 where the token was generated here, 0 where it is prompt. */
  mask: Uint8Array;
  /** 0 where the mask is 0. */
  logProbs: Float32Array;
};

/**
 * One sequence for a contiguous conversation. Where a prompt does not continue the tokens before it (the template rewrote the past), a
 * new sequence begins with that whole prompt; tokens that an earlier sequence trains on are masked there. Empty: no turn has token ids.
 */
export function sequencesOf({ turns }: Pick<Trajectory, 'turns'>): TokenSequence[] {
  const sequences: Piece[][] = [];
  let pieces: Piece[] = [];
  let length = 0;
  for (const { tokens } of turns) {
    if (!tokens || tokens.generation.length === 0) continue;
    if (tokens.prefix_length < length) {
      sequences.push(pieces);
      pieces = asPrompt(pieces, tokens.prefix_length);
      length = tokens.prefix_length;
    }
    pieces.push({ ids: tokens.prompt_suffix, logProbs: null });
    pieces.push({ ids: tokens.generation, logProbs: tokens.log_probs });
    length += tokens.prompt_suffix.length + tokens.generation.length;
  }
  if (pieces.length > 0) sequences.push(pieces);
  return sequences.map(joined);
}

/** `logProbs`: null for tokens of a prompt. */
type Piece = { ids: Int32Array; logProbs: Float32Array | null };

/** The first `length` tokens, as prompt. */
function asPrompt(pieces: readonly Piece[], length: number): Piece[] {
  const kept: Piece[] = [];
  let left = length;
  for (const { ids } of pieces) {
    if (left === 0) break;
    kept.push({ ids: ids.subarray(0, left), logProbs: null });
    left -= Math.min(left, ids.length);
  }
  return kept;
}

function joined(pieces: readonly Piece[]): TokenSequence {
  const length = pieces.reduce((sum, { ids }) => sum + ids.length, 0);
  const sequence = {
    ids: new Int32Array(length),
    mask: new Uint8Array(length),
    logProbs: new Float32Array(length),
  };
  let at = 0;
  for (const { ids, logProbs } of pieces) {
    sequence.ids.set(ids, at);
    if (logProbs) {
      sequence.mask.fill(1, at, at + ids.length);
      sequence.logProbs.set(logProbs, at);
    }
    at += ids.length;
  }
  return sequence;
}
