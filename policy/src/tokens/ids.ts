/**
 * Converts token ids between JSON and typed arrays. Prompts are converted without JavaScript lists, which would allocate a megabyte for
 * each prompt of 60,000 tokens.
 */

const KEY = Buffer.from('"prompt_token_ids"');
const MAX_ID = 2 ** 31 - 1;
const [COLON, OPEN, CLOSE, COMMA, ZERO, NINE] = [0x3a, 0x5b, 0x5d, 0x2c, 0x30, 0x39];

/**
 * Replaces the first list of prompt ids in the JSON of an answer with `null` and returns the ids. Matching the bytes of the key is safe,
 * because quotes inside JSON strings are escaped. A list that is empty or has other values stays in the JSON.
 */
export function extractPromptIds(json: Buffer): { text: string; ids: Int32Array | null } {
  const key = json.indexOf(KEY);
  const start = key === -1 ? -1 : openingOf(json, key + KEY.length);
  const end = start === -1 ? -1 : json.indexOf(CLOSE, start);
  const ids = end === -1 ? null : parseIdBytes(json, start + 1, end);
  if (!ids?.length) return { text: json.toString('utf8'), ids: null };
  return { text: `${json.toString('utf8', 0, start)}null${json.toString('utf8', end + 1)}`, ids };
}

/** Returns the index of the list after a key; -1 if the value of the key is not a list. */
function openingOf(json: Buffer, from: number): number {
  let at = skipBlanks(json, from);
  if (json[at] !== COLON) return -1;
  at = skipBlanks(json, at + 1);
  return json[at] === OPEN ? at : -1;
}

/** Returns null for anything but integers of 31 bits separated by commas. */
function parseIdBytes(json: Buffer, from: number, end: number): Int32Array | null {
  const ids = new Int32Array(Math.ceil((end - from + 1) / 2));
  let count = 0;
  for (let at = skipBlanks(json, from); at < end; ) {
    if (count > 0) {
      if (json[at] !== COMMA) return null;
      at = skipBlanks(json, at + 1);
    }
    const first = at;
    let id = 0;
    for (let digit = json[at] ?? 0; at < end && digit >= ZERO && digit <= NINE; digit = json[++at] ?? 0) {
      id = id * 10 + digit - ZERO;
    }
    if (at === first || at - first > 10 || id > MAX_ID) return null;
    ids[count++] = id;
    at = skipBlanks(json, at);
  }
  return ids.slice(0, count);
}

export function skipBlanks(json: Buffer, from: number): number {
  let at = from;
  while (json[at] === 0x20 || json[at] === 0x0a || json[at] === 0x0d || json[at] === 0x09) at++;
  return at;
}

/** Writes a JSON list of ids, digit by digit: join() would allocate a string for each number. */
export function renderIds(ids: Int32Array): Buffer {
  const bytes = Buffer.allocUnsafe(ids.length * (String(MAX_ID).length + 1) + 2);
  let at = 0;
  bytes[at++] = OPEN;
  for (const id of ids) {
    if (at > 1) bytes[at++] = COMMA;
    let digits = 1;
    for (let rest = id; rest > 9; rest = Math.floor(rest / 10)) digits++;
    let rest = id;
    for (let index = at + digits - 1; index >= at; index--) {
      bytes[index] = ZERO + (rest % 10);
      rest = Math.floor(rest / 10);
    }
    at += digits;
  }
  bytes[at++] = CLOSE;
  return bytes.subarray(0, at);
}

/** Returns null for anything but a list of token ids. NeMo Gym's server sometimes sends ids as strings. */
export function parseIds(value: unknown): Int32Array | null {
  if (!Array.isArray(value)) return null;
  const ids = new Int32Array(value.length);
  for (let i = 0; i < value.length; i++) {
    const item: unknown = value[i];
    const id = typeof item === 'string' && /^\d{1,10}$/.test(item) ? Number(item) : item;
    if (typeof id !== 'number' || !Number.isInteger(id) || id < 0 || id > MAX_ID) return null;
    ids[i] = id;
  }
  return ids;
}

/** Returns null for anything but a list of finite numbers. */
export function parseLogProbs(value: unknown): Float32Array | null {
  if (!Array.isArray(value)) return null;
  const logProbs = new Float32Array(value.length);
  for (let i = 0; i < value.length; i++) {
    const item: unknown = value[i];
    if (typeof item !== 'number' || !Number.isFinite(item)) return null;
    logProbs[i] = item;
  }
  return logProbs;
}

export function joinIds(first: Int32Array, second: Int32Array): Int32Array<ArrayBuffer> {
  const both = new Int32Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}
