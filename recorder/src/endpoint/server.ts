/** The HTTP server of a recorder. Its limits bound what a command in the sandbox can do to the worker. */
import { createServer, type Server } from 'node:http';
import type { Recorder } from '../recorder.ts';

const SECONDS = 1_000;
/** Agents keep connections for minutes; a server that closes one while a request is under way breaks the request. */
const IDLE_MS = 3_600 * SECONDS;
const HEAD_MS = 20 * SECONDS;
const BODY_MS = 120 * SECONDS;
const MOST_CONNECTIONS = 128;

/** Returns the server, which does not listen yet. The caller closes it after the recorder. */
export function createRecorderServer(recorder: Pick<Recorder, 'handle'>): Server {
  const server = createServer(
    {
      keepAliveTimeout: IDLE_MS,
      headersTimeout: HEAD_MS,
      requestTimeout: BODY_MS,
      connectionsCheckingInterval: HEAD_MS,
    },
    (request, response) => recorder.handle(request, response),
  );
  server.maxConnections = MOST_CONNECTIONS;
  server.on('clientError', (_error, socket) => socket.destroy());
  return server;
}
