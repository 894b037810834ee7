/**
 * Reads the experts that a mixture-of-experts model chose for each token. Servers send one base64 text of several megabytes. The text is
 * cut out of the bytes of the answer before the JSON is parsed, and only new rows are decoded.
 */
import type { ExpertType } from '@swefarm/shared';
import { skipBlanks } from './ids.ts';

/** Expert rows of one answer: one row for each token of prompt and generation. */
export type RoutedExperts = ExpertShape & {
  rows: number;
  flaw?: undefined;
  /** Returns the bytes of rows `from` to `to` (exclusive). Throws ExpertFormatError for text that is not base64. */
  decode(from: number, to: number): Int8Array;
};
export type ExpertShape = { dtype: ExpertType; layers: number; top_k: number };
export type ExpertsFound = RoutedExperts | { flaw: string };

/** Thrown for unreadable experts; the message contains the reason. */
export class ExpertFormatError extends Error {
  override readonly name = 'ExpertFlaw';
}

export const ID_BYTES: Readonly<Record<ExpertType, number>> = {
  int8: 1,
  uint8: 1,
  int16: 2,
  uint16: 2,
  int32: 4,
};

/** Some vLLM releases send the rows of the prompt separately from the rows of the answer. */
const PROMPT_KEY = Buffer.from('"prompt_routed_experts"');
const KEY = Buffer.from('"routed_experts"');
const [COLON, QUOTE, BACKSLASH, NULL] = [0x3a, 0x22, 0x5c, 0x6e];
const NO_BASE64 = 'it is no text of base64';

/**
 * Replaces the experts in the JSON of an answer with `null` and returns them; null if there are none. Matching the bytes of the key is
 * safe, because quotes inside JSON strings are escaped.
 */
export function extractExperts(json: Buffer): { json: Buffer; experts: ExpertsFound | null } {
  const found = [PROMPT_KEY, KEY].flatMap((key) => findValue(json, key) ?? []);
  const values = found.filter((value) => value !== 'unreadable');
  // A readable value is cut out even if the other value has a flaw.
  const rest = without(json, values);
  if (values.length < found.length) return { json: rest, experts: { flaw: NO_BASE64 } };
  try {
    return { json: rest, experts: joined(values.map(({ text }) => readArray(text))) };
  } catch (error) {
    if (error instanceof ExpertFormatError) return { json: rest, experts: { flaw: error.message } };
    throw error;
  }
}

type Value = { start: number; end: number; text: Buffer };

function findValue(json: Buffer, key: Buffer): Value | 'unreadable' | null {
  for (let at = json.indexOf(key); at !== -1; at = json.indexOf(key, at + key.length)) {
    const colon = skipBlanks(json, at + key.length);
    if (json[colon] !== COLON) continue;
    const start = skipBlanks(json, colon + 1);
    if (json[start] === NULL) continue;
    if (json[start] !== QUOTE) return 'unreadable';
    const end = json.indexOf(QUOTE, start + 1);
    const text = json.subarray(start + 1, end);
    // Base64 needs no escapes.
    if (end === -1 || text.includes(BACKSLASH)) return 'unreadable';
    return { start, end: end + 1, text };
  }
  return null;
}

function without(json: Buffer, values: readonly Value[]): Buffer {
  const parts: Buffer[] = [];
  let from = 0;
  for (const { start, end } of values.toSorted((a, b) => a.start - b.start)) {
    parts.push(json.subarray(from, start), Buffer.from('null'));
    from = end;
  }
  return parts.length === 0 ? json : Buffer.concat([...parts, json.subarray(from)]);
}

/** Joins the rows of the prompt and the rows of the answer; null if there are none. */
function joined([first, second]: readonly RoutedExperts[]): RoutedExperts | null {
  if (first === undefined || second === undefined) return first ?? null;
  if (describeShape(first) !== describeShape(second)) {
    throw new ExpertFormatError(
      `the prompt's are ${describeShape(first)}, the answer's ${describeShape(second)}`,
    );
  }
  return {
    ...first,
    rows: first.rows + second.rows,
    decode(from, to) {
      if (to <= first.rows) return first.decode(from, to);
      if (from >= first.rows) return second.decode(from - first.rows, to - first.rows);
      const [head, tail] = [first.decode(from, first.rows), second.decode(0, to - first.rows)];
      const all = new Int8Array(head.length + tail.length);
      all.set(head);
      all.set(tail, head.length);
      return all;
    },
  };
}

export const describeShape = ({ dtype, layers, top_k }: ExpertShape): string =>
  `${dtype} of ${layers} layers x ${top_k}`;

type Header = ExpertShape & {
  rows: number;
  /** Where the rows begin: number of characters before the base64, and number of decoded bytes before the first row. */
  skip: [chars: number, bytes: number];
};

function readArray(text: Buffer): RoutedExperts {
  const { skip, ...form } = envelopeOf(text) ?? npyOf(text);
  const [chars, header] = skip;
  const base64 = text.subarray(chars);
  const row = form.layers * form.top_k * ID_BYTES[form.dtype];
  const length = Math.floor((base64.length * 3) / 4) - paddingOf(base64);
  if (length !== header + form.rows * row) {
    throw new ExpertFormatError(
      `it has ${length - header} bytes, and ${form.rows} rows of ${describeShape(form)} have ${form.rows * row}`,
    );
  }
  return { ...form, decode: (from, to) => decodeBytes(base64, header + from * row, header + to * row) };
}

function paddingOf(base64: Buffer): number {
  const tail = base64.subarray(-2).toString('latin1');
  return tail === '==' ? 2 : tail.endsWith('=') ? 1 : 0;
}

/** Parses NeMo RL's format: `nrlre1:int16:ROWSxLAYERSxTOPK:base64`. */
function envelopeOf(text: Buffer): Header | null {
  const match = /^nrlre1:([a-z0-9]{1,8}):(\d{1,9})x(\d{1,9})x(\d{1,9}):/.exec(text.toString('latin1', 0, 64));
  if (!match) return null;
  return headerOf(match[1] ?? '', match.slice(2).map(Number), [match[0].length, 0]);
}

const NPY = Buffer.from('\x93NUMPY', 'latin1');
const NPY_TYPES: Readonly<Record<string, string>> = {
  '|i1': 'int8',
  '|u1': 'uint8',
  '<i2': 'int16',
  '<u2': 'uint16',
  '<i4': 'int32',
};

/** Parses vLLM's format: the bytes of a numpy file. */
function npyOf(text: Buffer): Header {
  const head = Buffer.from(text.toString('latin1', 0, 2048), 'base64');
  const version = head[6];
  if (!head.subarray(0, 6).equals(NPY) || head.length < 12) {
    throw new ExpertFormatError("it is neither NeMo RL's nrlre1 nor numpy's npy");
  }
  const from = version === 1 ? 10 : 12;
  const end = from + (version === 1 ? head.readUInt16LE(8) : head.readUInt32LE(8));
  const dict = head.toString('latin1', from, end);
  const dtype = /'descr':\s*'([^']*)'/.exec(dict)?.[1] ?? '';
  const shape = /'shape':\s*\(([\d,\s]*)\)/.exec(dict)?.[1];
  if (/'fortran_order':\s*True/.test(dict) || shape === undefined) {
    throw new ExpertFormatError(`its head is ${dict.slice(0, 100).trim()}`);
  }
  return headerOf(
    NPY_TYPES[dtype] ?? dtype,
    shape
      .split(',')
      .filter((one) => one.trim() !== '')
      .map(Number),
    [0, end],
  );
}

function headerOf(dtype: string, shape: readonly number[], skip: Header['skip']): Header {
  const [rows, layers, top_k] = shape;
  if (!(dtype in ID_BYTES) || shape.length !== 3 || !rows || !layers || !top_k) {
    throw new ExpertFormatError(
      `it is ${dtype} [${shape.join(', ')}], and expected are integers of at most 32 bits [tokens, layers, experts]`,
    );
  }
  return { dtype: dtype as ExpertType, rows, layers, top_k, skip };
}

/** Number of characters to decode at a time. Decoding the whole text at once would allocate megabytes. */
const CHARS = 64 * 1024;

/** Returns the decoded bytes `from` to `to` (exclusive) of a base64 text. Throws ExpertFormatError for text that is not base64. */
function decodeBytes(base64: Buffer, from: number, to: number): Int8Array {
  const first = Math.floor(from / 3);
  const last = Math.min(Math.ceil(to / 3) * 4, base64.length);
  const bytes = Buffer.alloc(Math.ceil(to / 3) * 3 - first * 3);
  let length = 0;
  for (let at = first * 4; at < last; at += CHARS) {
    const piece = base64.toString('latin1', at, Math.min(at + CHARS, last));
    length += bytes.write(piece, length, 'base64');
  }
  const skipped = from - first * 3;
  if (length < skipped + to - from) throw new ExpertFormatError(NO_BASE64);
  return new Int8Array(bytes.buffer, bytes.byteOffset + skipped, to - from);
}
