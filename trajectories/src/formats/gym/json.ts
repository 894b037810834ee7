/** Writes JSON whose floats Python reads as floats. NeMo RL's advantages raise for a batch of integer rewards. */

/** A number with a decimal point; null when it is not finite. */
export function float(value: number): string {
  if (!Number.isFinite(value)) return 'null';
  const text = String(value);
  return /[.e]/.test(text) ? text : `${text}.0`;
}

/** A single-precision number in the fewest digits that restore it. */
export const single = (value: number): string => float(Number(value.toPrecision(9)));

/** The growing text of a rollout's ids. Each turn's prompt is a slice of it, without a copy. */
export class IdText {
  #bytes = Buffer.allocUnsafe(4096);
  #length = 0;
  /** End of each id in the text. */
  #ends = new Uint32Array(1024);
  #count = 0;

  /** Drops what follows the first `count` ids, then appends. */
  extend(count: number, ids: Int32Array): void {
    this.#count = Math.min(count, this.#count);
    this.#length = this.#count === 0 ? 0 : (this.#ends[this.#count - 1] ?? 0);
    if (this.#count + ids.length > this.#ends.length) {
      const ends = new Uint32Array((this.#count + ids.length) * 2);
      ends.set(this.#ends.subarray(0, this.#count));
      this.#ends = ends;
    }
    const text = ids.join(',');
    const added = this.#length === 0 || text === '' ? text : `,${text}`;
    this.#reserve(this.#length + added.length);
    this.#bytes.write(added, this.#length, 'latin1');
    let end = this.#length - (this.#length === 0 ? 1 : 0);
    for (const id of ids) {
      end += 1 + String(id).length;
      this.#ends[this.#count++] = end;
    }
    this.#length += added.length;
  }

  get count(): number {
    return this.#count;
  }

  /** The ids so far, without brackets. The slice stays valid when ids are appended later. */
  slice(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  #reserve(length: number): void {
    // A buffer with dropped ids is copied, because earlier slices must not change.
    if (length <= this.#bytes.length && this.#length >= this.#written) {
      this.#written = length;
      return;
    }
    const bytes = Buffer.allocUnsafe(Math.max(length * 2, 4096));
    this.#bytes.copy(bytes, 0, 0, this.#length);
    this.#bytes = bytes;
    this.#written = length;
  }
  #written = 0;
}
