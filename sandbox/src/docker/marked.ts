/**
 * Finds the line that ends an answer of the first process in the output of its command. The line begins with a byte that ends no line
 * of text, so the end of a shell's reply is never withheld as a possible beginning of the line.
 */

const CODE = /^(\d{1,3})\n/;

/** @param nonce the beginning of the line, unknown inside the container */
export class MarkedOutput {
  readonly #mark: Buffer;
  readonly #print: (bytes: Buffer) => void;
  #pending: Buffer = Buffer.alloc(0);
  #code: number | null = null;

  constructor(nonce: string, print: (bytes: Buffer) => void) {
    this.#mark = Buffer.from(`\x01${nonce} `);
    this.#print = print;
  }

  /** Prints the output before the line. Returns the exit code of the line; null until the line is complete. Drops later output. */
  push(chunk: Buffer): number | null {
    if (this.#code !== null) return this.#code;
    const all = this.#pending.length > 0 ? Buffer.concat([this.#pending, chunk]) : chunk;
    const at = all.indexOf(this.#mark);
    const end = at < 0 ? this.#beginIn(all) : at;
    if (end > 0) this.#print(all.subarray(0, end));
    this.#pending = all.subarray(end);
    if (at < 0) return null;
    const code = CODE.exec(this.#pending.subarray(this.#mark.length).toString('latin1'))?.[1];
    this.#code = code === undefined ? null : Number(code);
    return this.#code;
  }

  /** Returns the index of a possible beginning of the line; without one, the length. */
  #beginIn(all: Buffer): number {
    for (let at = Math.max(0, all.length - this.#mark.length); at < all.length; at++) {
      if (all[at] === this.#mark[0] && this.#mark.subarray(0, all.length - at).equals(all.subarray(at)))
        return at;
    }
    return all.length;
  }

  /** Prints the pending bytes. They do not begin the line, because the output has ended. */
  end(): void {
    if (this.#code === null && this.#pending.length > 0) this.#print(this.#pending);
    this.#pending = Buffer.alloc(0);
  }
}
