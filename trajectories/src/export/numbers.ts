/** Converts typed arrays to JSON, faster than JSON.stringify, which writes a float32 with all digits of a double. */

/** Output buffer, reused by all calls and enlarged when a call needs more bytes. */
let digits = Buffer.allocUnsafe(1 << 16);

const MINUS = 45;
const POINT = 46;
const COMMA = 44;
const ZERO = 48;
/** Maximum number of characters of a double and a comma. */
const LONGEST = 26;
const POWERS = Float64Array.from({ length: 13 }, (_, exponent) => 10 ** exponent);
/** Upper bound of the integers that V8 divides without conversion to doubles. */
const LIMIT = 2 ** 31;

export function idsText(values: Int32Array): string {
  const out = room(values.length);
  let at = 0;
  for (let index = 0; index < values.length; index++) {
    if (index > 0) out[at++] = COMMA;
    at = writeWhole(out, values[index] as number, at);
  }
  return `[${out.toString('latin1', 0, at)}]`;
}

/** Returns a JSON list whose values parse to the same float32 numbers; `instead` replaces each value that is not finite. */
export function floatsText(values: Float32Array, instead: number): string {
  const out = room(values.length);
  let at = 0;
  for (let index = 0; index < values.length; index++) {
    if (index > 0) out[at++] = COMMA;
    const value = values[index] as number;
    at = Number.isFinite(value) ? writeFloat(out, value, at) : writeDouble(out, instead, at);
  }
  return `[${out.toString('latin1', 0, at)}]`;
}

function room(numbers: number): Buffer {
  if (digits.length < numbers * LONGEST) digits = Buffer.allocUnsafe(numbers * LONGEST);
  return digits;
}

const writeDouble = (out: Buffer, value: number, at: number): number =>
  at + out.write(String(value), at, 'latin1');

function writeWhole(out: Buffer, value: number, at: number): number {
  if (value >= 0) return writeDigits(out, value, lengthOf(value), at);
  if (value <= -LIMIT) return writeDouble(out, value, at);
  out[at] = MINUS;
  return writeDigits(out, -value, lengthOf(-value), at + 1);
}

/** Returns how many decimals identify nearly all float32 of this size and stay below {@link LIMIT}; 0: more would be needed. */
function decimalsFor(size: number): number {
  if (size >= 1) return size >= 100 ? 0 : size >= 10 ? 7 : 8;
  if (size >= 0.1) return 9;
  if (size >= 1e-3) return 10;
  return size >= 1e-5 ? 12 : 0;
}

function writeFloat(out: Buffer, value: number, at: number): number {
  const size = Math.abs(value);
  const decimals = decimalsFor(size);
  const power = POWERS[decimals] as number;
  const scaled = Math.round(size * power) | 0;
  if (decimals === 0 || Math.fround(scaled / power) !== size) return writeDouble(out, value, at);
  let position = at;
  if (value < 0) out[position++] = MINUS;
  const whole = Math.floor(size) | 0;
  const part = (scaled - whole * power) | 0;
  // If the number is just below an integer, the decimals may round up to 1.
  if (part >= power) return writeDouble(out, value, at);
  position = writeDigits(out, whole, lengthOf(whole), position);
  if (part === 0) return position;
  out[position] = POINT;
  return writeDigits(out, part, decimals, position + 1);
}

/** Writes exactly `length` digits, with leading zeros. */
function writeDigits(out: Buffer, value: number, length: number, at: number): number {
  let rest = value | 0;
  for (let position = at + length - 1; position >= at; position--) {
    const next = (rest / 10) | 0;
    out[position] = ZERO + rest - next * 10;
    rest = next;
  }
  return at + length;
}

function lengthOf(value: number): number {
  if (value < 100_000) return value < 100 ? (value < 10 ? 1 : 2) : value < 1_000 ? 3 : value < 10_000 ? 4 : 5;
  if (value < 10_000_000) return value < 1_000_000 ? 6 : 7;
  return value < 100_000_000 ? 8 : value < 1_000_000_000 ? 9 : 10;
}
