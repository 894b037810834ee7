/** Reads the controller's replies: a begin line, the raw output, an end line with a nonce. */
import type { Duplex } from 'node:stream';

export type Reply = {
  body: Buffer;
  fields: string[];
};

/** Thrown if the shell is lost: the stream ended, or exceeds the size of a reply. */
export class ShellLostError extends Error {
  override readonly name = 'ShellLostError';
}

const END_LINE_BYTES = 512;

export class ReplyReader {
  readonly #stream: Duplex;
  readonly #nonce: string;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #waiting: {
    seq: number;
    maxBytes: number;
    resolve(reply: Reply): void;
    reject(error: Error): void;
  } | null = null;
  #lost: ShellLostError | null = null;

  constructor(stream: Duplex, nonce: string) {
    this.#stream = stream;
    this.#nonce = nonce;
    stream.on('data', (chunk: Buffer) => this.#push(chunk));
    stream.once('end', () => this.#lose('its stream ended'));
    stream.once('close', () => this.#lose('its stream was closed'));
    stream.once('error', (error: Error) => this.#lose(`its stream broke: ${error.message}`));
  }

  get lost(): boolean {
    return this.#lost !== null;
  }

  /** Resolves with the reply to request `seq`; rejects with ShellLostError. Only one call may wait at a time. */
  next(seq: number, maxBytes: number): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (this.#lost) return reject(this.#lost);
      this.#waiting = { seq, maxBytes, resolve, reject };
      this.#scan();
    });
  }

  #lose(why: string): void {
    this.#lost ??= new ShellLostError(why);
    const waiting = this.#waiting;
    this.#waiting = null;
    this.#chunks = [];
    waiting?.reject(this.#lost);
  }

  #push(chunk: Buffer): void {
    if (this.#lost) return;
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes > (this.#waiting?.maxBytes ?? 0) + 1_048_576) {
      this.#stream.destroy();
      this.#lose('its stream carries more than a reply');
      return;
    }
    this.#scan();
  }

  /** Returns the end line, if the bytes so far end with one. Reads only the last bytes, so that scanning stays linear. */
  #endLine(): string | null {
    let tail = this.#chunks.at(-1);
    for (let i = this.#chunks.length - 2; i >= 0 && tail && tail.length < END_LINE_BYTES; i--) {
      tail = Buffer.concat([this.#chunks[i] ?? Buffer.alloc(0), tail]);
    }
    if (tail?.at(-1) !== 0x0a) return null;
    const text = tail.subarray(-END_LINE_BYTES).toString('latin1');
    const at = text.lastIndexOf(`\n${this.#nonce} end `);
    return at < 0 ? null : text.slice(at);
  }

  #setBytes(bytes: Buffer): void {
    this.#chunks = bytes.length > 0 ? [bytes] : [];
    this.#bytes = bytes.length;
  }

  #scan(): void {
    const waiting = this.#waiting;
    if (!waiting) return;
    const endLine = this.#endLine();
    if (endLine === null) return;
    const lineEnd = endLine.indexOf('\n', 1);
    const [seq, ...fields] = endLine.slice(1, lineEnd).split(' ').slice(2);
    const all = Buffer.concat(this.#chunks);
    const begin = Buffer.from(`\n${this.#nonce} begin ${waiting.seq}\n`);
    const at = all.indexOf(begin);
    const endAt = all.length - endLine.length;
    if (Number(seq) !== waiting.seq) {
      // This is a late reply to an earlier request. The reply to the current request may have begun behind it.
      this.#setBytes(all.subarray(at < 0 ? endAt + lineEnd + 1 : at));
      return;
    }
    this.#setBytes(Buffer.alloc(0));
    this.#waiting = null;
    if (at < 0) waiting.reject(new ShellLostError('its reply has no beginning'));
    else waiting.resolve({ body: all.subarray(at + begin.length, endAt), fields });
  }
}
