/**
 * Writes `routed_experts` of an output item as NeMo RL reads it (nemo_rl/utils/routed_experts_codec.py): a row for each token of prompt
 * and answer. Each item repeats the rows of all earlier turns, so the rows are stored once and each item is written in pieces.
 */
import { ID_BYTES } from '@swefarm/policy';
import type { TurnExperts, TurnTokens } from '@swefarm/shared';

/** Rows of the tokens with the indices `from` to `to` (exclusive). */
type Span = { from: number; to: number; experts: TurnExperts };

export function openExpertTable() {
  let spans: Span[] = [];
  let largest = 0;
  const note = (experts: TurnExperts): void => {
    const { start } = experts;
    spans = spans
      .filter(({ from }) => from < start)
      .map((span) => ({ ...span, to: Math.min(span.to, start) }));
    spans.push({ from: start, to: start + rowsOf(experts), experts });
    largest = Math.max(largest, largestOf(experts));
  };
  return {
    /** Adds the rows of a turn that another line has. */
    addShared({ generation, routed_experts: experts }: TurnTokens): void {
      if (experts !== undefined && generation.length > 0) note(experts);
    },
    /** Adds the new rows of a turn. Yields the JSON member `routed_experts` with a leading comma, or nothing when rows are missing. */
    *add({
      prefix_length,
      prompt_suffix,
      generation,
      routed_experts: experts,
    }: TurnTokens): Generator<string> {
      if (experts === undefined || generation.length === 0) return;
      note(experts);
      const total = prefix_length + prompt_suffix.length + generation.length;
      if (!covers(spans, total)) return;
      yield ',"routed_experts":"';
      yield* envelope(spans, total, wireType(experts, largest));
      yield '"';
    },
  };
}

const rowBytes = ({ dtype, layers, top_k }: TurnExperts): number => layers * top_k * ID_BYTES[dtype];
const rowsOf = (experts: TurnExperts): number => experts.rows.length / rowBytes(experts);

/** Returns whether the spans cover all tokens without a gap. The row of the last token may be missing. */
function covers(spans: readonly Span[], total: number): boolean {
  let at = 0;
  for (const { from, to } of spans) {
    if (from !== at) return false;
    at = to;
  }
  return at === total || at === total - 1;
}

type Ids = Int8Array | Uint8Array | Int16Array | Uint16Array | Int32Array;
const ARRAYS = {
  int8: Int8Array,
  uint8: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
};

/** Returns the expert ids with the indices `from` to `to` (exclusive); a copy if their bytes are not aligned. */
function idsOf({ dtype, rows }: TurnExperts, from: number, to: number): Ids {
  const size = ID_BYTES[dtype];
  const at = rows.byteOffset + from * size;
  if (at % size === 0) return new ARRAYS[dtype](rows.buffer as ArrayBuffer, at, to - from);
  return new ARRAYS[dtype](rows.slice(from * size, to * size).buffer);
}

function largestOf(experts: TurnExperts): number {
  // Only unsigned ids change their type, so the largest signed id is not needed.
  if (!experts.dtype.startsWith('u')) return 0;
  let largest = 0;
  for (const id of idsOf(experts, 0, experts.rows.length / ID_BYTES[experts.dtype]))
    if (id > largest) largest = id;
  return largest;
}

type WireType = 'int8' | 'int16' | 'int32';

/** Returns the type of the written ids. NeMo RL accepts only signed integers, so unsigned ids get the smallest sufficient signed type. */
function wireType({ dtype }: TurnExperts, largest: number): WireType {
  if (dtype === 'uint8') return largest < 128 ? 'int8' : 'int16';
  if (dtype === 'uint16') return largest < 32_768 ? 'int16' : 'int32';
  return dtype;
}

/** Bytes encoded at once: a multiple of three, so that the base64 texts can be concatenated. */
const PIECE = 48 * 1024;

function* envelope(spans: readonly Span[], total: number, type: WireType): Generator<string> {
  const [first] = spans;
  if (!first) return;
  const { layers, top_k } = first.experts;
  yield `nrlre1:${type}:${total}x${layers}x${top_k}:`;
  const piece = Buffer.allocUnsafe(PIECE);
  let length = 0;
  for (const bytes of wireBytes(spans, total, type)) {
    for (let at = 0; at < bytes.length; ) {
      const taken = bytes.copy(piece, length, at, Math.min(bytes.length, at + PIECE - length));
      at += taken;
      length += taken;
      if (length < PIECE) continue;
      yield piece.toString('base64');
      length = 0;
    }
  }
  yield piece.toString('base64', 0, length);
}

function* wireBytes(spans: readonly Span[], total: number, type: WireType): Generator<Buffer> {
  let at = 0;
  for (const { from, to, experts } of spans) {
    const ids = experts.layers * experts.top_k;
    // Converting a few rows at a time limits the memory of converted rows.
    const step = Math.max(1, Math.floor(PIECE / ids));
    for (let row = from; row < to; row += step) {
      const end = Math.min(row + step, to);
      yield asType(idsOf(experts, (row - from) * ids, (end - from) * ids), type);
    }
    at = to;
  }
  const [last] = spans;
  // The last sampled token went through no layer, so it has no row. NeMo RL's server pads with the same row.
  if (last && at < total) {
    const { layers, top_k } = last.experts;
    yield asType(
      Int32Array.from({ length: layers * top_k }, (_, at) => at % top_k),
      type,
    );
  }
}

function asType(ids: Ids, type: WireType): Buffer {
  const wide = ids.BYTES_PER_ELEMENT === ID_BYTES[type] ? ids : new ARRAYS[type](ids);
  return Buffer.from(wide.buffer, wide.byteOffset, wide.byteLength);
}
