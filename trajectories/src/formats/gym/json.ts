/** Writes floats as JSON that Python reads as floats. NeMo RL fails to compute the advantages of a batch of integer rewards. */
import { GrowableText } from '@swefarm/policy';

/** Part of a JSON text. */
export type Piece = string | Buffer;

/** Returns a number with a decimal point or an exponent; `null` when it is not finite. */
export function float(value: number): string {
  if (!Number.isFinite(value)) return 'null';
  const text = String(value);
  return /[.e]/.test(text) ? text : `${text}.0`;
}

/** Returns a float32 with at most 9 digits, which suffice to restore it. */
export const single = (value: number): string => float(Number(value.toPrecision(9)));

/** Comma-separated JSON values. The list at an earlier time is a slice of the same bytes and needs no copy. */
export class JsonList {
  readonly #text = new GrowableText();
  #count = 0;

  /** The values so far, without brackets. Later calls do not change the returned bytes. */
  get bytes(): Buffer {
    return this.#text.bytes;
  }

  /** Appends `count` values, which are separated by commas. */
  push(values: string, count = 1): void {
    if (count === 0) return;
    this.#text.append(this.#count === 0 ? values : `,${values}`);
    this.#count += count;
  }

  /** Removes all numbers after the first `count`. The list must contain only numbers. */
  truncate(count: number): void {
    if (count >= this.#count) return;
    const { bytes } = this.#text;
    let end = -1;
    for (let left = count; left > 0; left--) end = bytes.indexOf(',', end + 1);
    this.#text.truncate(Math.max(0, end));
    this.#count = count;
  }
}
