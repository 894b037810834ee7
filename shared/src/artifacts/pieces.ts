/** Writes JSON in pieces, so that a large value does not block the event loop. */
import { StringDecoder } from 'node:string_decoder';

const PIECE = 32 * 1024;
/** Maximum depth of nested values that are divided; deeper values are written as one piece. */
const DEPTH = 10;

/** Yields the JSON of a value as buffers of about 32 KiB. A Uint8Array is UTF-8 text; arrays of {@link DTYPES} become `{dtype, base64}`. */
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
  else if (typeof value !== 'object' || value === null || depth === DEPTH) {
    yield JSON.stringify(value, encodeValue) ?? 'null';
  } else if (value instanceof Uint8Array) yield* quoted(decoded(value));
  else if (isPacked(value)) yield* packed(value);
  else {
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

/** Yields a JSON string. A surrogate pair across two slices becomes two escapes, which parse as the same character. */
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

/** Classes of the typed arrays that artifacts encode, by `dtype`. */
export const DTYPES = { int8: Int8Array, int32: Int32Array, float32: Float32Array } as const;
type Packed = InstanceType<(typeof DTYPES)[keyof typeof DTYPES]>;
const TYPES = Object.entries(DTYPES);

const dtypeOf = (value: unknown): string | undefined => TYPES.find(([, type]) => value instanceof type)?.[0];
const isPacked = (value: unknown): value is Packed => dtypeOf(value) !== undefined;

/** Yields an encoded array. The bytes are little-endian, like x64 and arm64. */
function* packed(value: Packed): Generator<string> {
  yield `{"dtype":"${dtypeOf(value)}","base64":"`;
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  // Base64 texts can be concatenated if each encodes a multiple of three bytes.
  const step = Math.floor(PIECE / 4) * 3;
  for (let at = 0; at < bytes.length; at += step) yield bytes.toString('base64', at, at + step);
  yield '"}';
}

const encodeValue = (_key: string, value: unknown): unknown =>
  isPacked(value) ? JSON.parse([...packed(value)].join('')) : value;
