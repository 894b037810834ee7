/** Writes floats as JSON that Python reads as floats. NeMo RL fails to compute the advantages of a batch of integer rewards. */

/** Returns a number with a decimal point or an exponent; `null` when it is not finite. */
export function float(value: number): string {
  if (!Number.isFinite(value)) return 'null';
  const text = String(value);
  return /[.e]/.test(text) ? text : `${text}.0`;
}

/** Returns a float32 with at most 9 digits, which suffice to restore it. */
export const single = (value: number): string => float(Number(value.toPrecision(9)));

/** Comma-separated text of a rollout's token ids. The prompt of each turn is a slice of this text and needs no copy. */
export class IdText {
  #bytes = Buffer.allocUnsafe(4096);
  #length = 0;
  #ends = new Uint32Array(1024);
  #count = 0;

  /** Removes all ids after the first `count`, then appends `ids`. */
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

  /** Returns the current ids, without brackets. A later `extend` does not change the slice. */
  slice(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  #reserve(length: number): void {
    // After ids were removed, the buffer is copied, because earlier slices must not change.
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
