/** Extracts the token sequences of a trajectory, with a mask of the generated tokens. */
import type { Span, Trajectory, Turn, TurnExperts, WholeLine } from '@swefarm/shared';
import { chosenLines, type LineChoice, lineFacts } from '../../export/lines.ts';

export type TokenSequence = {
  ids: Int32Array;
  /** 1 for tokens that were generated in this sequence, 0 for tokens of a prompt. */
  mask: Uint8Array;
  /** Log-probability of each generated token; 0 for tokens of a prompt. */
  logProbs: Float32Array;
  /** Index in `names` of the policy version that sampled the token; -1: the token is from a prompt, or the version is unknown. */
  versions: Int32Array;
  names: string[];
  /** The answers sampled in this sequence: tokens [start, stop), finish reason, and the version at the end. */
  answers: { start: number; stop: number; finish_reason: string | null; version: string | null }[];
  /** The stored experts of all turns. Rows of later turns replace earlier ones. */
  experts: TurnExperts[];
};

/** A sequence of a line. The weights of all segments of a rollout sum to 1. */
export type Segment = {
  sequence: TokenSequence;
  facts: ReturnType<typeof lineFacts> & { line_count: number; line_weight: number };
};

/**
 * Returns the segments of the chosen lines that have token ids. Each sampled token of these lines has mask 1 in exactly one segment: a line
 * that continues another line masks the turns of the other line. `line_count` is the number of these lines.
 */
export function segmentsOf(trajectory: Trajectory, choice: LineChoice): Segment[] {
  const lines = chosenLines(trajectory, choice).flatMap((line) => {
    const sequences = sequencesOf(line);
    return sequences.length === 0 ? [] : [{ facts: lineFacts(line), sequences }];
  });
  const line_count = lines.length;
  return lines.flatMap(({ facts, sequences }) =>
    sequences.map((sequence) => ({
      sequence,
      facts: { ...facts, line_count, line_weight: 1 / line_count / sequences.length },
    })),
  );
}

/**
 * Returns one sequence for a contiguous conversation. A prompt that does not continue all earlier tokens begins a new sequence, which masks
 * the tokens of earlier sequences. Turns that another line has are masked. The result is empty if no own turn has token ids.
 */
export function sequencesOf({
  turns,
  shared = { turns: 0 },
}: Pick<Trajectory, 'turns'> & { shared?: Pick<WholeLine['shared'], 'turns'> }): TokenSequence[] {
  const sequences: Piece[][] = [];
  let pieces: Piece[] = [];
  let length = 0;
  for (const [at, turn] of turns.entries()) {
    const { tokens } = turn;
    if (!tokens || tokens.generation.length === 0) continue;
    if (tokens.prefix_length < length) {
      sequences.push(pieces);
      pieces = asPrompt(pieces, tokens.prefix_length);
      length = tokens.prefix_length;
    }
    pieces.push({ ids: tokens.prompt_suffix, logProbs: null, spans: [], turn });
    const sampled = { ids: tokens.generation, logProbs: tokens.log_probs, spans: spansOf(turn), turn };
    pieces.push(at < shared.turns ? { ...sampled, logProbs: null, spans: [] } : sampled);
    length += tokens.prompt_suffix.length + tokens.generation.length;
  }
  if (pieces.length > 0) sequences.push(pieces);
  return sequences.filter((own) => own.some(({ logProbs }) => logProbs !== null)).map(joined);
}

/** Consecutive tokens; `logProbs` is null for tokens of a prompt. */
type Piece = { ids: Int32Array; logProbs: Float32Array | null; spans: readonly Span[]; turn: Turn };

/** Returns the policy versions of a turn. Without spans, the version is known only if it was the same at start and end. */
function spansOf({ spans, tokens, policy_version: { start, end } }: Turn): readonly Span[] {
  if (spans) return spans;
  return start !== null && start === end ? [{ version: start, tokens: tokens?.generation.length ?? 0 }] : [];
}

/** Returns the first `length` tokens as tokens of a prompt. */
function asPrompt(pieces: readonly Piece[], length: number): Piece[] {
  const taken: Piece[] = [];
  let left = length;
  for (const { ids, turn } of pieces) {
    if (left === 0) break;
    taken.push({ ids: ids.subarray(0, left), logProbs: null, spans: [], turn });
    left -= Math.min(left, ids.length);
  }
  return taken;
}

function joined(pieces: readonly Piece[]): TokenSequence {
  const length = pieces.reduce((sum, { ids }) => sum + ids.length, 0);
  const sequence = {
    ids: new Int32Array(length),
    mask: new Uint8Array(length),
    logProbs: new Float32Array(length),
    versions: new Int32Array(length).fill(-1),
    names: [] as string[],
    answers: [] as TokenSequence['answers'],
    experts: [...new Set(pieces.map(({ turn }) => turn.tokens?.routed_experts))].filter(
      (one) => one !== undefined,
    ),
  };
  let at = 0;
  for (const { ids, logProbs, spans, turn } of pieces) {
    let from = at;
    for (const { version, tokens } of spans) {
      if (version !== null) {
        if (!sequence.names.includes(version)) sequence.names.push(version);
        sequence.versions.fill(sequence.names.indexOf(version), from, from + tokens);
      }
      from += tokens;
    }
    sequence.ids.set(ids, at);
    if (logProbs) {
      sequence.mask.fill(1, at, at + ids.length);
      sequence.logProbs.set(logProbs, at);
      const { finish_reason, policy_version } = turn;
      sequence.answers.push({ start: at, stop: at + ids.length, finish_reason, version: policy_version.end });
    }
    at += ids.length;
  }
  return sequence;
}
