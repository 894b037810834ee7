/** Arrays and texts that grow, so that appending has constant amortised cost. */

export type GrowableArray<T extends Int32Array | Float32Array> = {
  readonly length: number;
  push(items: T): void;
  all(): T;
};

const FIRST = 256;

export const growableIds = (): GrowableArray<Int32Array> => growing((length) => new Int32Array(length));
export const growableLogProbs = (): GrowableArray<Float32Array> =>
  growing((length) => new Float32Array(length));

function growing<T extends Int32Array | Float32Array>(make: (length: number) => T): GrowableArray<T> {
  let items = make(FIRST);
  let length = 0;
  return {
    get length() {
      return length;
    },
    push(more) {
      const needed = length + more.length;
      if (needed > items.length) {
        const larger = make(Math.max(needed, 2 * items.length));
        larger.set(items.subarray(0, length));
        items = larger;
      }
      items.set(more, length);
      length = needed;
    },
    all: () => items.slice(0, length) as T,
  };
}

const FIRST_BYTES = 16 * 1024;

/** UTF-8 text. Calls do not change the bytes that `bytes` returned earlier, because a request may still be sending them. */
export class GrowableText {
  #bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #length = 0;

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  append(text: string): void {
    const needed = this.#length + Buffer.byteLength(text);
    if (needed > this.#bytes.length) this.#copy(Math.max(needed, Math.ceil(this.#bytes.length * 1.5)));
    this.#length += this.#bytes.write(text, this.#length, 'utf8');
  }

  /** Removes all bytes after the first `length`. */
  truncate(length: number): void {
    if (length >= this.#length) return;
    this.#length = length;
    this.#copy(this.#bytes.length);
  }

  #copy(size: number): void {
    const larger = Buffer.allocUnsafeSlow(size);
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}
