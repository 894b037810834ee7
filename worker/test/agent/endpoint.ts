/** Test tool: a policy endpoint on the loopback whose answers the test writes. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Request = {
  path: string;
  headers: IncomingMessage['headers'];
  body: Record<string, unknown> & { messages: Record<string, unknown>[] };
  /** Monotonic milliseconds. */
  at: number;
  /** Resolves to the time, as `at`, when the client closes the connection before the answer is complete. */
  closed: Promise<number>;
};
export type Handler = (request: Request, response: ServerResponse, index: number) => void;

export type Endpoint = AsyncDisposable & { url: string; requests: Request[] };

/** Handlers answer in order; the last one answers all further requests. */
export async function startEndpoint(...handlers: Handler[]): Promise<Endpoint> {
  const requests: Request[] = [];
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const closed = new Promise<number>((resolve) => {
        response.on('close', () => {
          if (!response.writableFinished) resolve(performance.now());
        });
      });
      const body = JSON.parse(Buffer.concat(chunks).toString() || '{}');
      const { url: path = '', headers } = incoming;
      const request = { path, headers, body, at: performance.now(), closed };
      const index = requests.push(request) - 1;
      handlers[Math.min(index, handlers.length - 1)]?.(request, response, index);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export const sendJson =
  (body: unknown, status = 200, headers: Record<string, string> = {}): Handler =>
  (_, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify(body));
  };

export const sendText =
  (text: string, status = 200, headers: Record<string, string> = {}): Handler =>
  (_, response) => {
    response.writeHead(status, { 'content-type': 'text/html', ...headers });
    response.end(text);
  };

/** The error form of OpenAI and vLLM. */
export const sendError = (
  status: number,
  message: string,
  more: Record<string, unknown> = {},
  headers = {},
): Handler =>
  sendJson(
    { error: { message, type: 'BadRequestError', param: null, code: status, ...more } },
    status,
    headers,
  );

const NOTHING_ELSE = { refusal: null, annotations: [] };
export const completion = (content: string | null, more: Record<string, unknown> = {}) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content, ...NOTHING_ELSE }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
  ...more,
});

/** An answer of vLLM with token ids. */
export const completionWithTokens = (content: string, prompt: number[], generation: number[]) => ({
  ...completion(content),
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content },
      finish_reason: 'stop',
      token_ids: generation,
      logprobs: {
        content: generation.map((id) => ({
          token: `t${id}`,
          logprob: -id / 8,
          bytes: [1],
          top_logprobs: [],
        })),
      },
    },
  ],
  prompt_token_ids: prompt,
  usage: { prompt_tokens: prompt.length, completion_tokens: generation.length },
});
