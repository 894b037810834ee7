/** JSON piece by piece, so that a large value holds the event loop for no longer than a piece takes. */
import { StringDecoder } from 'node:string_decoder';

const PIECE = 32 * 1024;
/** Deeper than anything of ours; what an endpoint nests deeper than this is written at once. */
const DEPTH = 8;

/**
 * The JSON of a value as buffers of some 32 KiB. Bytes (Uint8Array) are written as the text that they are in UTF-8, other typed arrays as
 * `{dtype, base64}`.
 */
export function* inPieces(value: unknown): Generator<Buffer> {
  let text = '';
  for (const part of partsOf(value, 0)) {
    text += part;
    if (text.length < PIECE) continue;
    yield Buffer.from(text, 'utf8');
    text = '';
  }
  yield Buffer.from(text, 'utf8');
}

function* partsOf(value: unknown, depth: number): Generator<string> {
  if (typeof value === 'string') yield* quoted(sliced(value));
  else if (value instanceof Uint8Array) yield* quoted(decoded(value));
  else if (isPacked(value)) yield* packed(value);
  else if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || depth === DEPTH) {
    yield JSON.stringify(value, encodeValue) ?? 'null';
  } else {
    const list = Array.isArray(value);
    const entries = list ? value.entries() : Object.entries(value).filter(([, item]) => item !== undefined);
    let before = list ? '[' : '{';
    for (const [key, item] of entries) {
      yield list ? before : `${before}${JSON.stringify(key)}:`;
      yield* partsOf(item, depth + 1);
      before = ',';
    }
    if (before !== ',') yield before;
    yield list ? ']' : '}';
  }
}

/** A pair of units that a cut goes through is escaped unit by unit, which reads the same. */
function* quoted(slices: Iterable<string>): Generator<string> {
  yield '"';
  for (const slice of slices) yield JSON.stringify(slice).slice(1, -1);
  yield '"';
}

function* sliced(text: string): Generator<string> {
  for (let at = 0; at < text.length; at += PIECE) yield text.slice(at, at + PIECE);
}

function* decoded(bytes: Uint8Array): Generator<string> {
  const decoder = new StringDecoder('utf8');
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < buffer.length; at += PIECE) yield decoder.write(buffer.subarray(at, at + PIECE));
  yield decoder.end();
}

type Packed = Int8Array | Int32Array | Float32Array;

const isPacked = (value: unknown): value is Packed => dtypeOf(value) !== null;

function dtypeOf(value: unknown): 'int8' | 'int32' | 'float32' | null {
  if (value instanceof Int8Array) return 'int8';
  if (value instanceof Int32Array) return 'int32';
  return value instanceof Float32Array ? 'float32' : null;
}

/** Node runs on little-endian machines only where we ship (x64, arm64), so the memory is the wire form. */
function* packed(value: Packed): Generator<string> {
  yield `{"dtype":"${dtypeOf(value)}","base64":"`;
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  // Three bytes are four characters: pieces of such a length can stand one behind the other.
  const step = Math.floor(PIECE / 4) * 3;
  for (let at = 0; at < bytes.length; at += step) yield bytes.toString('base64', at, at + step);
  yield '"}';
}

/** What is nested too deep for pieces. */
const encodeValue = (_key: string, value: unknown): unknown =>
  isPacked(value) ? JSON.parse([...packed(value)].join('')) : value;
