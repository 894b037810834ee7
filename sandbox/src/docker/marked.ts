/**
 * Finds the line that ends an answer of a first process in what its command prints. It begins with a byte that ends no line, so that no
 * reply of a shell waits here for what may be the rest of it.
 */

const CODE = /^(\d{1,3})\n/;

/** @param nonce what the line begins with, known to nobody in the container */
export class MarkedOutput {
  readonly #mark: Buffer;
  readonly #print: (bytes: Buffer) => void;
  #held: Buffer = Buffer.alloc(0);
  #code: number | null = null;

  constructor(nonce: string, print: (bytes: Buffer) => void) {
    this.#mark = Buffer.from(`\x01${nonce} `);
    this.#print = print;
  }

  /** The exit code on the line; null until that was read. What comes after it is dropped: no answer has more. */
  push(chunk: Buffer): number | null {
    if (this.#code !== null) return this.#code;
    const all = this.#held.length > 0 ? Buffer.concat([this.#held, chunk]) : chunk;
    const at = all.indexOf(this.#mark);
    const end = at < 0 ? this.#beginIn(all) : at;
    if (end > 0) this.#print(all.subarray(0, end));
    this.#held = all.subarray(end);
    if (at < 0) return null;
    const code = CODE.exec(this.#held.subarray(this.#mark.length).toString('latin1'))?.[1];
    this.#code = code === undefined ? null : Number(code);
    return this.#code;
  }

  /** Where the line may have begun; the length of it all when it has not. */
  #beginIn(all: Buffer): number {
    for (let at = Math.max(0, all.length - this.#mark.length); at < all.length; at++) {
      if (all[at] === this.#mark[0] && this.#mark.subarray(0, all.length - at).equals(all.subarray(at)))
        return at;
    }
    return all.length;
  }

  /** Prints what was held back as a possible beginning of the line: there comes none. */
  end(): void {
    if (this.#code === null && this.#held.length > 0) this.#print(this.#held);
    this.#held = Buffer.alloc(0);
  }
}
