/**
 * Performs HTTP exchanges through the connection pool of the process. The reader of an answer is a plain function, because a stream or a
 * promise for each piece would cost more than the processing of its tokens.
 */
import { createRequire } from 'node:module';
import type { Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { Agent, Dispatcher } from 'undici';

// compile/pieces.mjs removes the next line: the bundle defines `require` itself.
const require = createRequire(import.meta.url);

/** Connections per origin, more than the rollouts of one node: further requests would wait in the pool, where no metric counts them. */
const CONNECTIONS = 4096;
const CONNECT_TIMEOUT_MS = 10_000;

type Fields = Readonly<Record<string, string | string[] | undefined>>;

/** Head of an answer. `header` returns null for an absent header; names are in lower case. */
export type AnswerHead = { status: number; fields: Fields; header(name: string): string | null };

/** Takes the bytes of an answer as they arrive. An error that this function throws ends the exchange. */
export type TakeBytes = (bytes: Buffer) => void;

export type HttpRequest = {
  address: URL;
  method: 'GET' | 'POST';
  headers: Record<string, string>;
  /** `length`: number of bytes. `pieces` is emptied during the request, so that sent bytes can be freed. */
  body?: { length: number; pieces: Buffer[] };
};

/**
 * Sends a request and resolves at the end of the answer. Redirections are not followed. `onHead` is called once.
 *
 * @throws errors of the connection, of `onHead` and of the reader, or the reason of `signal` if aborted
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
  const unlisten = (): void => signal.removeEventListener('abort', onAbort);
  const fail = (error: Error): void => {
    unlisten();
    reject(error);
    controller?.abort(error);
    decoder?.destroy();
  };
  const end = (): void => {
    unlisten();
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
        // Interim answers (1xx) precede the final answer.
        if (status < 200) return;
        const header = (name: string) =>
          fields[name] === undefined ? null : [fields[name]].flat().join(', ');
        take = onHead({ status, fields, header });
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

/** Requests ask for no compression, but some proxies compress every answer. */
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

/**
 * Yields the pieces and removes each from the array. Otherwise all pieces would stay in memory until the answer ends: 0.3 MB for each
 * rollout at 60,000 tokens.
 */
function* released(pieces: Buffer[]): Generator<Buffer> {
  for (let piece = pieces.shift(); piece; piece = pieces.shift()) yield piece;
}

let pool: Agent | null = null;

/**
 * Returns the connection pool of the process. The pool has no timeouts for answers, because a server may send nothing for many minutes.
 * undici is loaded at the first request: loading takes 0.1 s, and most commands send no request.
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

/** Loads undici before the first request, in a process that will send one. */
export function preparePolicyConnections(): void {
  openPool();
}
