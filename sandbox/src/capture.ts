/** Stores the head and the tail of a byte stream in bounded memory, and counts all bytes. */
import type { ExecResult } from './runtime.ts';

export class Capture {
  #head: Buffer[] = [];
  #headBytes = 0;
  #tail: Buffer[] = [];
  #tailBytes = 0;
  #total = 0;
  readonly #headLimit: number;
  readonly #tailLimit: number;

  /** @param maxBytes maximum size of head and tail together */
  constructor(maxBytes: number) {
    this.#headLimit = Math.ceil(maxBytes / 2);
    this.#tailLimit = Math.floor(maxBytes / 2);
  }

  push(chunk: Buffer): void {
    this.#total += chunk.length;
    const room = this.#headLimit - this.#headBytes;
    if (room > 0) {
      const part = chunk.subarray(0, room);
      this.#head.push(part);
      this.#headBytes += part.length;
      if (part.length === chunk.length) return;
      chunk = chunk.subarray(room);
    }
    this.#tail.push(chunk);
    this.#tailBytes += chunk.length;
    // Trims only above twice the limit, to copy rarely. `result` makes the exact cut.
    if (this.#tailBytes > 2 * this.#tailLimit + 65_536) this.#trim();
  }

  #trim(): void {
    const all = Buffer.concat(this.#tail);
    const tail = this.#tailLimit === 0 ? Buffer.alloc(0) : Buffer.from(all.subarray(-this.#tailLimit));
    this.#tail = [tail];
    this.#tailBytes = tail.length;
  }

  get totalBytes(): number {
    return this.#total;
  }

  /** Returns the stored output. `tail` is null if nothing was dropped; then `head` is the whole stream. */
  result(): { head: Buffer; tail: Buffer | null; totalBytes: number } {
    const head = Buffer.concat(this.#head);
    if (this.#total <= this.#headLimit + this.#tailLimit) {
      return { head: Buffer.concat([head, ...this.#tail]), tail: null, totalBytes: this.#total };
    }
    this.#trim();
    return { head, tail: this.#tail[0] ?? Buffer.alloc(0), totalBytes: this.#total };
  }
}

/** @param by how the command ended @param exitCode ignored unless the command ended by itself */
export function execResult(
  capture: Capture,
  by: 'itself' | 'timeout' | 'abort',
  exitCode: number | null,
): ExecResult {
  const { head, tail, totalBytes } = capture.result();
  return {
    exitCode: by === 'itself' ? exitCode : null,
    timedOut: by === 'timeout',
    output: tail ? Buffer.concat([head, tail]) : head,
    outputBytes: totalBytes,
    truncated: tail !== null,
  };
}
