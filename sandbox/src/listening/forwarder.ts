/**
 * Listens inside a container by a program there (`forward.pl`, `forward.py`), for workers that may not enter the container's network
 * namespace. The program passes all connections over its stdin and stdout, in frames: a byte for the kind, the number of the connection, and
 * a number (both of 32 bits, big-endian). A DATA frame is followed by that many bytes.
 *
 * Code in the container can write frames and can end the program. So frames are checked, and each direction of a connection has a window:
 * the bytes that may be sent before the receiver grants more by CREDIT frames.
 */
import { readFileSync } from 'node:fs';
import { Duplex } from 'node:stream';
import { RolloutFailure, waitAtMost } from '@swefarm/shared';
import type { Container, Listener } from '../runtime.ts';
import { MOST_CONNECTIONS } from './server.ts';

const [LAUNCH, PERL, PYTHON] = ['forward.sh', 'forward.pl', 'forward.py'].map((name) =>
  readFileSync(new URL(`./${name}`, import.meta.url), 'utf8').replaceAll(/^ *#.*\n/gm, ''),
) as [string, string, string];
const START_MS = 30_000;
const GREETING_BYTES = 64;
const HEAD_BYTES = 9;
const WINDOW_BYTES = 65_536;
/** Limit of the bytes that the program has not read. A program that reads is far below: the windows limit the bytes of open connections. */
const MOST_UNREAD_BYTES = 2 * MOST_CONNECTIONS * WINDOW_BYTES;
const [OPEN, DATA, END, CREDIT, CLOSE] = [1, 2, 3, 4, 5];

type Send = (kind: number, value: number, bytes?: Buffer) => void;

/** Starts the program. Throws RolloutFailure `sandbox_start` if the image has neither perl nor python3, and errors of the runtime. */
export async function forward(
  open: Container['open'],
  onConnection: (socket: Duplex) => void,
  signal: AbortSignal,
): Promise<Listener> {
  const stream = await open(['/bin/sh', '-c', LAUNCH, 'sh', PERL, PYTHON], signal);
  const forwarder = new Forwarder(stream, onConnection);
  const { by } = await waitAtMost(forwarder.ready, START_MS, signal);
  if (by === 'itself' && forwarder.port > 0) return forwarder;
  await forwarder[Symbol.asyncDispose]();
  signal.throwIfAborted();
  throw new RolloutFailure(
    'sandbox_start',
    by === 'timeout'
      ? 'no program in the container could listen: no answer'
      : 'no program in the container could listen: this worker may not enter the network of the container, and the image has no working perl or python3',
  );
}

class Forwarder implements Listener {
  port = 0;
  readonly by = 'program';
  readonly closed: Promise<void>;
  /** Resolves when the program listens or has ended. */
  readonly ready: Promise<void>;
  readonly #stream: Duplex;
  readonly #onConnection: (socket: Duplex) => void;
  readonly #connections = new Map<number, Connection>();
  #received: Buffer = Buffer.alloc(0);
  #ready: (() => void) | null;

  constructor(stream: Duplex, onConnection: (socket: Duplex) => void) {
    this.#stream = stream;
    this.#onConnection = onConnection;
    const ready = Promise.withResolvers<void>();
    this.ready = ready.promise;
    this.#ready = ready.resolve;
    this.closed = new Promise((resolve) => {
      const end = (): void => {
        stream.destroy();
        for (const connection of this.#connections.values()) connection.destroy();
        ready.resolve();
        resolve();
      };
      for (const event of ['end', 'close', 'error']) stream.once(event, end);
    });
    stream.on('error', () => undefined);
    stream.on('data', (chunk: Buffer) => {
      this.#received = this.#received.length > 0 ? Buffer.concat([this.#received, chunk]) : chunk;
      if (!(this.#ready ? this.#greet() : this.#takeFrames())) stream.destroy();
    });
  }

  /** Returns false if the program prints something else. */
  #greet(): boolean {
    const at = this.#received.indexOf('\n');
    if (at < 0) return this.#received.length < GREETING_BYTES;
    const port = /^swefarm (\d{1,5})$/.exec(this.#received.toString('latin1', 0, at))?.[1];
    if (port === undefined) return false;
    this.port = Number(port);
    this.#received = this.#received.subarray(at + 1);
    this.#ready?.();
    this.#ready = null;
    return this.#takeFrames();
  }

  /** Returns false if a frame is invalid. */
  #takeFrames(): boolean {
    while (this.#received.length >= HEAD_BYTES) {
      const [kind, id, value] = [
        this.#received.readUInt8(0),
        this.#received.readUInt32BE(1),
        this.#received.readUInt32BE(5),
      ];
      if (kind < OPEN || kind > CLOSE || value > WINDOW_BYTES) return false;
      const whole = HEAD_BYTES + (kind === DATA ? value : 0);
      if (this.#received.length < whole) return true;
      const bytes = this.#received.subarray(HEAD_BYTES, whole);
      this.#received = this.#received.subarray(whole);
      if (kind === OPEN ? !this.#open(id) : this.#connections.get(id)?.receive(kind, value, bytes) === false)
        return false;
    }
    return true;
  }

  #open(id: number): boolean {
    if (this.#connections.has(id)) return false;
    const send: Send = (kind, value, bytes) => {
      if (kind === CLOSE) this.#connections.delete(id);
      this.#send(kind, id, value, bytes);
    };
    if (this.#connections.size >= MOST_CONNECTIONS) {
      send(CLOSE, 0);
      return true;
    }
    const connection = new Connection(send);
    this.#connections.set(id, connection);
    this.#onConnection(connection);
    return true;
  }

  #send(kind: number, id: number, value: number, bytes?: Buffer): void {
    if (this.#stream.destroyed) return;
    const head = Buffer.allocUnsafe(HEAD_BYTES);
    head.writeUInt8(kind, 0);
    head.writeUInt32BE(id, 1);
    head.writeUInt32BE(value, 5);
    this.#stream.write(bytes ? Buffer.concat([head, bytes]) : head);
    if (this.#stream.writableLength > MOST_UNREAD_BYTES) this.#stream.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stream.destroy();
    await this.closed;
  }
}

/** A connection in the container. */
class Connection extends Duplex {
  readonly #send: Send;
  /** Bytes that the program may send, and bytes that were read but not granted yet. */
  #incoming = WINDOW_BYTES;
  #ungranted = 0;
  /** Bytes that may be sent to the program. */
  #outgoing = WINDOW_BYTES;
  #unsent: { bytes: Buffer; done: (error?: Error) => void } | null = null;

  constructor(send: Send) {
    super({ highWaterMark: WINDOW_BYTES });
    this.#send = send;
    this.on('error', () => undefined);
  }

  /** Handles a frame of the program. Returns false if the frame exceeds a window. */
  receive(kind: number, value: number, bytes: Buffer): boolean {
    if (kind === DATA) return this.#takeData(bytes);
    if (kind === END) this.push(null);
    if (kind === CLOSE) this.destroy();
    if (kind !== CREDIT) return true;
    this.#outgoing += value;
    if (this.#outgoing > WINDOW_BYTES) return false;
    this.#flush();
    return true;
  }

  #takeData(bytes: Buffer): boolean {
    if (bytes.length > this.#incoming) return false;
    this.#incoming -= bytes.length;
    this.#ungranted += bytes.length;
    if (this.push(Buffer.from(bytes))) this.#grant();
    return true;
  }

  #grant(): void {
    if (this.#ungranted === 0) return;
    this.#send(CREDIT, this.#ungranted);
    this.#incoming += this.#ungranted;
    this.#ungranted = 0;
  }

  override _read(): void {
    this.#grant();
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error) => void): void {
    this.#unsent = { bytes: chunk, done };
    this.#flush();
  }

  #flush(): void {
    if (this.#unsent === null) return;
    const { bytes, done } = this.#unsent;
    const part = bytes.subarray(0, this.#outgoing);
    if (part.length > 0) this.#send(DATA, part.length, part);
    this.#outgoing -= part.length;
    this.#unsent = part.length < bytes.length ? { bytes: bytes.subarray(part.length), done } : null;
    if (this.#unsent === null) done();
  }

  override _final(done: () => void): void {
    this.#send(END, 0);
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#send(CLOSE, 0);
    done(error);
  }
}
