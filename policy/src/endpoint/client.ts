/**
 * HTTP client of policy endpoints, for rollouts and probes. It uses the types and errors of the OpenAI SDK, but not the SDK's client, which
 * would retry requests and serialise each body from an object.
 */
import { authorizationAt, type PolicyKey, tryParseJson } from '@swefarm/shared';
import { AnswerError, APIConnectionError, APIError } from './errors.ts';
import { type AnswerHead, exchange, type HttpRequest, type TakeBytes } from './exchange.ts';
import { type ListedModel, parseModels } from './models.ts';
import { type BodyPiece, metricsUrl, modelsUrl, type Route, routeUrl } from './post.ts';

export type EndpointClient = {
  /**
   * Posts a JSON body and resolves at the end of the answer. `onHead` receives the head and returns the reader of the bytes.
   *
   * @throws APIError for a status that is not 2xx; APIConnectionError without an answer; connection errors during the answer; errors of
   * `onHead` and of the reader; the reason of `signal` if aborted
   */
  post(
    route: Route,
    body: readonly BodyPiece[],
    signal: AbortSignal,
    onHead: (head: AnswerHead) => TakeBytes,
  ): Promise<void>;
  /** Posts a JSON body and returns the bytes of the answer. Throws the errors of post(). */
  postWhole(route: Route, body: readonly BodyPiece[], signal: AbortSignal): Promise<Buffer>;
  /** Lists the models. Throws the errors of post(), and AnswerError `garbage` if the answer is no list of models. */
  models(signal: AbortSignal): Promise<ListedModel[]>;
  /** Returns the metrics of the server in the text format of Prometheus. Throws the errors of post(). */
  metrics(signal: AbortSignal): Promise<string>;
};

/** `url` is the base URL, as in `--policy-url`. `headers` are sent with every request. The API key of a request depends on its address. */
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
        body: joined(body),
      },
      signal,
      onHead,
    );
  };
  const get = (address: string, signal: AbortSignal): Promise<Buffer> => {
    const sent = { address: new URL(address), method: 'GET', headers: headersAt(address) } as const;
    return whole((onHead) => request(sent, signal, onHead));
  };
  return {
    post,
    postWhole: (route, body, signal) => whole((onHead) => post(route, body, signal, onHead)),
    async models(signal) {
      const address = modelsUrl(url);
      const answer = await get(address, signal);
      const list = parseModels(tryParseJson(answer.toString('utf8')));
      if (list === null) throw new AnswerError('garbage', `${address} answers no list of models`);
      return list;
    },
    metrics: async (signal) => (await get(metricsUrl(url), signal)).toString('utf8'),
  };
}

async function whole(post: (onHead: () => TakeBytes) => Promise<void>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  await post(() => (bytes) => void chunks.push(bytes));
  return Buffer.concat(chunks);
}

/** Maximum number of stored bytes of a refusal; further bytes are discarded. */
const MOST_REFUSAL_BYTES = 1024 ** 2;

async function request(
  sent: HttpRequest,
  signal: AbortSignal,
  onHead: (head: AnswerHead) => TakeBytes,
): Promise<void> {
  const refused: Buffer[] = [];
  let refusedBytes = 0;
  let refusal: AnswerHead | null = null;
  let answered = false;
  try {
    await exchange(sent, signal, (head) => {
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

/** Returns the SDK's error with the server's message. Older versions of vLLM send the fields without the object `error` around them. */
function refusalOf(head: AnswerHead, text: string): APIError {
  const headers = new Headers();
  for (const [name, value = ''] of Object.entries(head.fields))
    for (const one of [value].flat()) headers.append(name, one);
  const json = tryParseJson(text);
  if (typeof json !== 'object' || json === null)
    return APIError.generate(head.status, undefined, text, headers);
  return APIError.generate(head.status, 'error' in json ? json : { error: json }, undefined, headers);
}

/** Pieces below this size are joined, because the connection writes each piece separately. Larger pieces are shared, not copied. */
const LARGE_BYTES = 16 * 1024;

function joined(body: readonly BodyPiece[]): NonNullable<HttpRequest['body']> {
  const pieces: Buffer[] = [];
  let small: Buffer[] = [];
  const join = (): void => {
    if (small.length > 0) pieces.push(Buffer.concat(small));
    small = [];
  };
  for (const piece of body) {
    const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece;
    if (bytes.length < LARGE_BYTES) small.push(bytes);
    else {
      join();
      pieces.push(bytes);
    }
  }
  join();
  return { length: pieces.reduce((sum, { length }) => sum + length, 0), pieces };
}
