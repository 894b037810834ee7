/**
 * The one HTTP client of policy endpoints, for rollouts and probes. It uses the OpenAI SDK's protocol types and throws its errors, but
 * never retries, and sends bodies that are bytes already: the SDK's own client would serialise them again from objects.
 */
import { createRequire } from 'node:module';
import type { Agent, Response } from 'undici';
import { authorizationAt, type PolicyKey } from '../../security/policykey.ts';
import { AnswerError, APIConnectionError, APIError } from './errors.ts';
import { type ListedModel, parseModels } from './models.ts';
import { type BodyPiece, modelsUrl, type Route, routeUrl } from './post.ts';

// The bundle replaces this line: see slurm/bundle.mjs.
const require = createRequire(import.meta.url);

/** More than the rollouts of one node: a lower number would queue requests here, where no metric shows them. */
const CONNECTIONS = 4096;
const CONNECT_TIMEOUT_MS = 10_000;

export type EndpointClient = {
  /**
   * Posts a JSON body and resolves with the head of the answer. The caller reads the answer's body.
   *
   * @throws APIError for a status that is not 2xx (redirections are not followed), APIConnectionError without an answer, or
   *   the signal's reason when aborted
   */
  post(route: Route, body: readonly BodyPiece[], signal: AbortSignal): Promise<Response>;
  /** The models that the endpoint lists. Throws as post() does, and AnswerError `garbage` when the answer is not a list of models. */
  models(signal: AbortSignal): Promise<ListedModel[]>;
};

/**
 * `url` is the base, as given to `--policy-url`. The key is looked up for each request, by the address it is sent to.
 * `headers` are sent with every request.
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
  const { fetch, pool } = openPool();
  const response = await fetch(address, { ...options, redirect: 'manual', dispatcher: pool }).catch(
    (cause: Error) => {
      options.signal.throwIfAborted();
      throw new APIConnectionError({ cause });
    },
  );
  if (response.ok) return response;
  throw refusalOf(response, await response.text().catch(String));
}

/** The SDK's error with the server's own message; older vLLM puts its fields beside `error` instead of in it. */
function refusalOf({ status, headers: received }: Response, text: string): APIError {
  const headers = new Headers([...received]);
  const json = jsonIn(text);
  if (json === null) return APIError.generate(status, undefined, text, headers);
  return APIError.generate(status, 'error' in json ? json : { error: json }, undefined, headers);
}

/** Null when the text is not a JSON object. */
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
 * The connection pool of the whole process. It has no time limits of its own: a long turn, or a full queue at the server, is
 * silent for many minutes. It is loaded at the first request, because most commands send none and loading takes 0.1 s.
 */
function openPool() {
  // Agent and fetch must come from the same undici: another version's fetch refuses this dispatcher.
  const { Agent, fetch } = require('undici') as typeof import('undici');
  pool ??= new Agent({
    headersTimeout: 0,
    bodyTimeout: 0,
    connections: CONNECTIONS,
    connect: { timeout: CONNECT_TIMEOUT_MS },
  });
  return { fetch, pool };
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

/**
 * The body as a stream that releases its bytes once they are sent. With a string body, fetch and its request would hold the text twice
 * until the answer ends: 1.3 MB a rollout at 60,000 tokens. `length` is in bytes.
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
    // Pull nothing before the connection asks for it.
    { highWaterMark: 0 },
  );
  return { stream, length };
}
