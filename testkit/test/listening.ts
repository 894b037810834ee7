import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { onTestFinished } from 'vitest';
import { listen } from '../src/listen.ts';

/** Starts an HTTP server on the loopback or a unix socket until the test ends. Returns its URL or the socket's path. */
export async function listening(handle: RequestListener, socketPath?: string): Promise<string> {
  const server = createServer(handle);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  if (socketPath === undefined) return `http://127.0.0.1:${await listen(server)}`;
  await once(server.listen(socketPath), 'listening');
  return socketPath;
}
