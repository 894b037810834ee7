/**
 * One HTTP exchange through the connection pool of the process. The bytes of an answer go to their reader as they arrive: streams and
 * promises for each piece would cost more than a token's own work.
 */
import { createRequire } from 'node:module';
import type { Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { Agent, Dispatcher } from 'undici';

// The bundle replaces this line: see slurm/bundle.mjs.
const require = createRequire(import.meta.url);

/** More than the rollouts of one node: a lower number would queue requests here, where no metric shows them. */
const CONNECTIONS = 4096;
const CONNECT_TIMEOUT_MS = 10_000;

/** The head of an answer. `header` gives null for one that is absent; names are in lower case. */
export type AnswerHead = { status: number; header(name: string): string | null; headers(): Headers };

/** Takes the bytes of an answer as they arrive. What it throws ends the exchange. */
export type TakeBytes = (bytes: Buffer) => void;

export type HttpRequest = {
  address: URL;
  method: 'GET' | 'POST';
  headers: Record<string, string>;
  /** Its pieces are taken when the connection writes them, and not held afterwards. `length` is in bytes. */
  body?: { length: number; pieces: Buffer[] };
};

/**
 * Resolves when the whole answer was taken; redirections are answers like all others.
 *
 * @param onHead called once, when the head of the answer is there; returns who takes its bytes
 * @throws what the connection, `onHead` or the reader throws, or the signal's reason when aborted
 */
export function exchange(
  { address, method, headers, body }: HttpRequest,
  signal: AbortSignal,
  onHead: (head: AnswerHead) => TakeBytes,
): Promise<void> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let controller: Dispatcher.DispatchController | null = null;
  let take: TakeBytes | null = null;
  let decoder: Transform | null = null;
  const onAbort = (): void => fail(signal.reason as Error);
  const over = (): void => signal.removeEventListener('abort', onAbort);
  const fail = (error: Error): void => {
    over();
    reject(error);
    controller?.abort(error);
    decoder?.destroy();
  };
  const end = (): void => {
    over();
    resolve();
  };
  signal.addEventListener('abort', onAbort, { once: true });
  openPool().dispatch(
    {
      origin: address.origin,
      path: `${address.pathname}${address.search}`,
      method,
      headers: body ? { ...headers, 'content-length': String(body.length) } : headers,
      body: body ? (released(body.pieces) as unknown as Buffer) : null,
    },
    {
      onRequestStart(started) {
        controller = started;
        if (signal.aborted) started.abort(signal.reason as Error);
      },
      onResponseStart(_controller, status, fields) {
        // Interim answers come before the answer.
        if (status < 200) return;
        take = onHead({ status, ...readerOf(fields) });
        decoder = decoderOf(fields)?.on('data', guarded(take, fail)).on('end', end).on('error', fail) ?? null;
      },
      onResponseData: (_controller, bytes) => void (decoder ? decoder.write(bytes) : take?.(bytes)),
      onResponseEnd: () => void (decoder ? decoder.end() : end()),
      onResponseError: (_controller, error) => fail(error),
    },
  );
  return promise;
}

const DECODERS: Record<string, (() => Transform) | undefined> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

/** No compression is asked for, but some proxies compress every answer. */
function decoderOf({ 'content-encoding': encoding }: Fields): Transform | undefined {
  return typeof encoding === 'string' ? DECODERS[encoding.toLowerCase()]?.() : undefined;
}

const guarded =
  (take: TakeBytes, fail: (error: Error) => void): TakeBytes =>
  (bytes) => {
    try {
      take(bytes);
    } catch (error) {
      fail(error as Error);
    }
  };

type Fields = Readonly<Record<string, string | string[] | undefined>>;

const readerOf = (fields: Fields): Pick<AnswerHead, 'header' | 'headers'> => ({
  header(name) {
    const value = fields[name];
    return value === undefined ? null : Array.isArray(value) ? value.join(', ') : value;
  },
  headers() {
    const all = new Headers();
    for (const [name, value] of Object.entries(fields))
      for (const one of Array.isArray(value) ? value : [value ?? '']) all.append(name, one);
    return all;
  },
});

/** With bytes in its place, the request would hold them until the answer ends: 0.3 MB a rollout at 60,000 tokens. */
function* released(pieces: Buffer[]): Generator<Buffer> {
  for (let piece = pieces.shift(); piece; piece = pieces.shift()) yield piece;
}

let pool: Agent | null = null;

/**
 * The connection pool of the whole process. It has no time limits of its own: a long turn, or a full queue at the server, is
 * silent for many minutes. It is loaded at the first request, because most commands send none and loading takes 0.1 s.
 */
function openPool(): Agent {
  if (pool) return pool;
  const { Agent } = require('undici') as typeof import('undici');
  pool = new Agent({
    headersTimeout: 0,
    bodyTimeout: 0,
    connections: CONNECTIONS,
    connect: { timeout: CONNECT_TIMEOUT_MS },
  });
  return pool;
}

/** Loads what a first request needs, for a process that will send one and has nothing else to do now. */
export function preparePolicyConnections(): void {
  openPool();
}

/** Closes idle and busy connections; the next request opens a new pool. */
export async function closePolicyConnections(): Promise<void> {
  const closing = pool;
  pool = null;
  await closing?.destroy();
}
