/**
 * The one HTTP client of policy endpoints, for rollouts and probes. It speaks the OpenAI SDK's protocol types and throws its errors,
 * but sends bodies that are bytes already, which the SDK's own client would make again from objects, and never sends twice.
 */
import type { Agent, Response } from 'undici';
import { authorizationAt, type PolicyKey } from '../../security/policykey.ts';
import { AnswerError, APIConnectionError, APIError } from './errors.ts';
import { type ListedModel, parseModels } from './models.ts';
import { type BodyPiece, modelsUrl, type Route, routeUrl } from './post.ts';

/** More than rollouts of one node: a lower number queues requests here, where nobody sees them. */
const CONNECTIONS = 4096;
const CONNECT_TIMEOUT_MS = 10_000;

export type EndpointClient = {
  /**
   * Posts a JSON body and resolves with the head of the answer. The body of the answer is the caller's to read.
   *
   * @throws APIError for a status that is not 2xx (a redirection is not followed), APIConnectionError without an answer, or
   *   the signal's reason when aborted
   */
  post(route: Route, body: readonly BodyPiece[], signal: AbortSignal): Promise<Response>;
  /** The models that it lists. Throws as post(), and AnswerError `garbage` for what is no list of models. */
  models(signal: AbortSignal): Promise<ListedModel[]>;
};

/**
 * `url` is the base, as given to `--policy-url`. The key is looked up for the address of each request, as it is sent.
 * `headers` go with every request.
 */
export function createEndpointClient(
  url: string,
  apiKey: PolicyKey | null,
  headers: Readonly<Record<string, string>> = {},
): EndpointClient {
  const headersAt = (address: string) => ({
    accept: 'application/json',
    ...headers,
    ...authorizationAt(apiKey, address),
  });
  return {
    post(route, body, signal) {
      const address = routeUrl(url, route);
      const { stream, length } = streamOnce(body);
      return request(address, {
        method: 'POST',
        headers: {
          ...headersAt(address),
          'content-type': 'application/json',
          // For servers that do not read chunked requests.
          'content-length': String(length),
        },
        body: stream,
        duplex: 'half',
        signal,
      });
    },
    async models(signal) {
      const address = modelsUrl(url);
      const response = await request(address, { headers: headersAt(address), signal });
      const list = parseModels(jsonIn(await response.text()));
      if (list === null) throw new AnswerError('garbage', `${address} answers no list of models`);
      return list;
    },
  };
}

type RequestOptions = NonNullable<Parameters<typeof import('undici')['fetch']>[1]> & { signal: AbortSignal };

async function request(address: string, options: RequestOptions): Promise<Response> {
  const { fetch, pool } = await openPool();
  const response = await fetch(address, { ...options, redirect: 'manual', dispatcher: pool }).catch(
    (cause: Error) => {
      options.signal.throwIfAborted();
      throw new APIConnectionError({ cause });
    },
  );
  if (response.ok) return response;
  throw refusalOf(response, await response.text().catch(String));
}

/** The SDK's error, with the server's own message; older vLLM has its fields beside `error`, not in it. */
function refusalOf({ status, headers: received }: Response, text: string): APIError {
  const headers = new Headers([...received]);
  const json = jsonIn(text);
  if (json === null) return APIError.generate(status, undefined, text, headers);
  return APIError.generate(status, 'error' in json ? json : { error: json }, undefined, headers);
}

/** Null for what is no JSON object. */
function jsonIn(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' ? value : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

let pool: Agent | null = null;

/**
 * The connections of the whole process. They have no time limits of their own: a long turn, or a full queue at the server, is
 * silent for many minutes. Loaded at the first request, because most commands send none and the load takes 0.1 s.
 */
async function openPool() {
  // The same undici must make both: another version's fetch refuses this dispatcher.
  const { Agent, fetch } = await import('undici');
  pool ??= new Agent({
    headersTimeout: 0,
    bodyTimeout: 0,
    connections: CONNECTIONS,
    connect: { timeout: CONNECT_TIMEOUT_MS },
  });
  return { fetch, pool };
}

/** Closes idle and busy connections; the next request opens a new pool. */
export async function closePolicyConnections(): Promise<void> {
  const closing = pool;
  pool = null;
  await closing?.destroy();
}

/**
 * The body as a stream that lets go of its bytes when they are sent. A text would be held, twice, by fetch and its request for as
 * long as the answer takes: 1.3 MB a rollout at 60,000 tokens. `length` is in bytes.
 */
function streamOnce(pieces: readonly BodyPiece[]): { stream: ReadableStream<Uint8Array>; length: number } {
  const chunks = pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : piece));
  const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  const stream = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const chunk = chunks.shift();
        if (chunk) controller.enqueue(chunk);
        if (chunks.length === 0) controller.close();
      },
    },
    // Nothing is pulled before the connection asks for it.
    { highWaterMark: 0 },
  );
  return { stream, length };
}
