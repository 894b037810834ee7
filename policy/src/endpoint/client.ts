/**
 * The one client of policy endpoints, for rollouts and probes. It uses the OpenAI SDK's protocol types and throws its errors, but
 * never retries, and sends bodies that are bytes already: the SDK's own client would serialise them again from objects.
 */
import { authorizationAt, type PolicyKey } from '@swefarm/shared';
import { AnswerError, APIConnectionError, APIError } from './errors.ts';
import { type AnswerHead, exchange, type HttpRequest, type TakeBytes } from './exchange.ts';
import { type ListedModel, parseModels } from './models.ts';
import { type BodyPiece, modelsUrl, type Route, routeUrl } from './post.ts';

export type EndpointClient = {
  /**
   * Posts a JSON body. `onHead` is called with the head of the answer, and returns who takes its bytes; resolves at the answer's end.
   *
   * @throws APIError for a status that is not 2xx (redirections are not followed), APIConnectionError without an answer, what the
   *   connection throws when the answer breaks off, what `onHead` and the taker throw, or the signal's reason when aborted
   */
  post(
    route: Route,
    body: readonly BodyPiece[],
    signal: AbortSignal,
    onHead: (head: AnswerHead) => TakeBytes,
  ): Promise<void>;
  /** Posts a JSON body and returns the bytes of the answer. Throws as post() does. */
  postWhole(route: Route, body: readonly BodyPiece[], signal: AbortSignal): Promise<Buffer>;
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
    'accept-encoding': 'identity',
    'user-agent': 'swefarm',
    ...headers,
    ...authorizationAt(apiKey, address),
  });
  const post: EndpointClient['post'] = (route, body, signal, onHead) => {
    const address = routeUrl(url, route);
    return request(
      {
        address: new URL(address),
        method: 'POST',
        headers: { ...headersAt(address), 'content-type': 'application/json' },
        body: bodyOf(body),
      },
      signal,
      onHead,
    );
  };
  return {
    post,
    postWhole: (route, body, signal) => whole((onHead) => post(route, body, signal, onHead)),
    async models(signal) {
      const address = modelsUrl(url);
      const asked = { address: new URL(address), method: 'GET', headers: headersAt(address) } as const;
      const answer = await whole((onHead) => request(asked, signal, onHead));
      const list = parseModels(jsonIn(answer.toString('utf8')));
      if (list === null) throw new AnswerError('garbage', `${address} answers no list of models`);
      return list;
    },
  };
}

async function whole(ask: (onHead: () => TakeBytes) => Promise<void>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  await ask(() => (bytes) => void chunks.push(bytes));
  return Buffer.concat(chunks);
}

/** A refusal's text beyond this is not read. */
const MOST_REFUSAL_BYTES = 1024 ** 2;

async function request(
  asked: HttpRequest,
  signal: AbortSignal,
  onHead: (head: AnswerHead) => TakeBytes,
): Promise<void> {
  const refused: Buffer[] = [];
  let refusedBytes = 0;
  let refusal: AnswerHead | null = null;
  let answered = false;
  try {
    await exchange(asked, signal, (head) => {
      answered = head.status >= 200 && head.status < 300;
      if (answered) return onHead(head);
      refusal = head;
      return (bytes) => {
        refusedBytes += bytes.length;
        if (refusedBytes <= MOST_REFUSAL_BYTES) refused.push(bytes);
      };
    });
  } catch (error) {
    signal.throwIfAborted();
    if (refusal === null) throw answered ? error : new APIConnectionError({ cause: error as Error });
  }
  if (refusal !== null) throw refusalOf(refusal, Buffer.concat(refused).toString('utf8'));
}

/** The SDK's error with the server's own message; older vLLM puts its fields beside `error` instead of in it. */
function refusalOf(head: AnswerHead, text: string): APIError {
  const json = jsonIn(text);
  if (json === null) return APIError.generate(head.status, undefined, text, head.headers());
  return APIError.generate(head.status, 'error' in json ? json : { error: json }, undefined, head.headers());
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

/** Small pieces are joined, because each is a write of its own; a large one is sent as it is. */
const LARGE_BYTES = 16 * 1024;

function bodyOf(body: readonly BodyPiece[]): NonNullable<HttpRequest['body']> {
  const pieces: Buffer[] = [];
  let small: Buffer[] = [];
  const join = (): void => {
    if (small.length > 0) pieces.push(Buffer.concat(small));
    small = [];
  };
  let length = 0;
  for (const piece of body) {
    const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece;
    length += bytes.length;
    if (bytes.length < LARGE_BYTES) small.push(bytes);
    else {
      join();
      pieces.push(bytes);
    }
  }
  join();
  return { length, pieces };
}
