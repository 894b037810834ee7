/** A recorder behind a real server, and a client that asks it as an agent does. */
import { once } from 'node:events';
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Message } from '@swefarm/shared';
import { createRecorderServer, openRecorder, type RecorderOptions } from '../src/index.ts';
import { KEY } from './options.ts';

export type Reply = {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  json: () => Record<string, unknown>;
};

/** Opens a recorder and its server. Dispose it to close both. */
export async function openEndpoint(options: RecorderOptions) {
  const recorder = openRecorder(options);
  const server = createRecorderServer(recorder);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    recorder,
    server,
    port,
    /** Sends a request, and resolves with the whole reply. Throws if the connection breaks. */
    send: (path: string, body: unknown = undefined, more: SendOptions = {}) => send(port, path, body, more),
    /** Asks in dialect chat. */
    chat: (messages: readonly Message[], fields: Record<string, unknown> = {}, more: SendOptions = {}) =>
      send(port, '/v1/chat/completions', { model: 'toy', messages, tools: TOOLS, ...fields }, more),
    async [Symbol.asyncDispose]() {
      await recorder[Symbol.asyncDispose]();
      server.closeAllConnections();
      server.close();
    },
  };
}

const TOOLS = [
  { type: 'function', function: { name: 'bash', description: 'Runs.', parameters: { type: 'object' } } },
];

export type SendOptions = {
  headers?: Record<string, string>;
  method?: string;
  signal?: AbortSignal;
  onText?: (text: string) => void;
};

async function send(port: number, path: string, body: unknown, options: SendOptions): Promise<Reply> {
  const { headers = {}, method = body === undefined ? 'GET' : 'POST', signal, onText } = options;
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  const sent = httpRequest(
    {
      ...{ port, path, method, signal, agent: false },
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
    },
    (response) => {
      const pieces: string[] = [];
      response.setEncoding('utf8');
      response.on('data', (piece: string) => {
        pieces.push(piece);
        onText?.(piece);
      });
      response.on('error', reject).on('end', () => {
        const text = pieces.join('');
        const { statusCode: status = 0, headers: head } = response;
        resolve({ status, headers: head, text, json: () => JSON.parse(text) });
      });
    },
  );
  sent.on('error', reject);
  sent.end(
    body === undefined
      ? undefined
      : typeof body === 'string' || Buffer.isBuffer(body)
        ? body
        : JSON.stringify(body),
  );
  return await promise;
}
