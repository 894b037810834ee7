/** Sends answers and faults over HTTP, and handles clients that disconnect. */
import type { ServerResponse } from 'node:http';
import { sleepAtMost, whenAborted } from '@swefarm/shared';
import type { Fault } from './faults.ts';

export function sendJson(
  response: ServerResponse,
  status: number,
  body: string,
  headers: Headers = {},
): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...headers,
  });
  response.end(body);
}
type Headers = Record<string, string | number>;

/** An error in the shape of vLLM's. */
export function sendError(
  response: ServerResponse,
  status: number,
  message: string,
  more: { type?: string; param?: string | null; headers?: Headers } = {},
): void {
  const error = {
    message,
    type: more.type ?? TYPES[status] ?? 'InternalServerError',
    param: more.param ?? null,
    code: status,
  };
  sendJson(response, status, JSON.stringify({ error }), more.headers);
}

const TYPES: Record<number, string> = {
  400: 'BadRequestError',
  401: 'AuthenticationError',
  404: 'NotFoundError',
  429: 'RateLimitError',
  503: 'ServiceUnavailableError',
};

type Asked = { model: string; headers: Headers; signal: AbortSignal };
type Replace = (response: ServerResponse, asked: Asked) => void | Promise<void>;

const reset: Replace = (response) => {
  response.socket?.resetAndDestroy();
};
const REPLACING: Partial<Record<Fault['kind'], Replace>> = {
  refuse: reset,
  reset,
  unauthorized: (response) => sendError(response, 401, 'Unauthorized'),
  model_unknown: (response, { model }) =>
    sendError(response, 404, `The model \`${model}\` does not exist.`, { param: 'model' }),
  rate_limited: (response, { headers }) => sendError(response, 429, 'Too many requests', { headers }),
  server_error: (response) =>
    sendError(response, 500, 'EngineCore encountered an issue. See stack trace (above) for the root cause.'),
  unavailable: (response, { headers }) =>
    sendError(response, 503, 'The engine is being restarted', { headers }),
  garbage: (response) =>
    sendJson(response, 200, '<html><body>Welcome to the proxy</body></html>', {
      'content-type': 'text/html',
    }),
  no_choices: (response) => sendJson(response, 200, '{"id":"none","object":"chat.completion","choices":[]}'),
  silence: (_, { signal }) => whenAborted(signal),
};

/** Applies faults that replace the answer. False when the answer is still needed. */
export async function sendFault(
  response: ServerResponse,
  { kind, retry_after }: Fault,
  model: string,
  signal: AbortSignal,
): Promise<boolean> {
  const replace = REPLACING[kind];
  if (!replace) return false;
  const headers = retry_after === undefined ? {} : { 'retry-after': retry_after };
  await replace(response, { model, headers, signal });
  return true;
}

/** Sends an answer, or breaks it off if the fault demands it. Resolves when it is sent or the client has disconnected. */
export async function sendAnswer(
  response: ServerResponse,
  body: string,
  fault: Fault | null,
  signal: AbortSignal,
): Promise<void> {
  if (fault?.kind !== 'cut' && fault?.kind !== 'slow_body') return sendJson(response, 200, body);
  const bytes = Buffer.from(body);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': bytes.length });
  if (fault.kind === 'cut') {
    const half = bytes.subarray(0, bytes.length >> 1);
    await new Promise((resolve) => response.write(half, resolve));
    response.socket?.destroy();
    return;
  }
  const drops = 20;
  const size = Math.ceil(bytes.length / drops);
  for (let at = 0; at < bytes.length && !signal.aborted; at += size) {
    response.write(bytes.subarray(at, at + size));
    await sleepAtMost((fault.ms ?? 2000) / drops, signal);
  }
  response.end();
}

/** Streams events. A cut stream ends after half of the events. Calls `onEvent` after each event. */
export async function sendEvents(
  response: ServerResponse,
  events: Iterable<string>,
  fault: Fault | null,
  signal: AbortSignal,
  { eventMs, onEvent }: { eventMs: number; onEvent: () => void },
): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  const all = [...events];
  const sent = fault?.kind === 'cut' ? all.slice(0, all.length >> 1) : all;
  const gapMs = fault?.kind === 'slow_body' ? (fault.ms ?? 2000) / all.length : eventMs;
  for (const event of sent) {
    if (signal.aborted) return;
    // Flushed before the connection is reset, so that the written part arrives.
    await new Promise((resolve) => response.write(event, resolve));
    onEvent();
    if (gapMs > 0) await sleepAtMost(gapMs, signal);
  }
  if (fault?.kind === 'cut') response.socket?.destroy();
  else response.end();
}
