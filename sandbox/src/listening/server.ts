/** A listening socket of this process, as a {@link Listener}. */
import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Listener } from '../runtime.ts';

/** Maximum number of open connections of a listener. Further connections are closed. */
export const MOST_CONNECTIONS = 256;

export function listenerOf(server: Server, onConnection: (socket: Duplex) => void): Listener {
  const sockets = new Set<Socket>();
  server.maxConnections = MOST_CONNECTIONS;
  // Sockets of an HTTP server answer a client that has ended its side.
  Object.assign(server, { allowHalfOpen: true, noDelay: true });
  server.on('error', () => undefined);
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
    onConnection(socket);
  });
  const closed = once(server, 'close').then(() => undefined);
  return {
    port: (server.address() as AddressInfo).port,
    by: 'worker',
    closed,
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
