/** A listening socket that can close and reopen on the same port, so that connections are really refused. */
import type { AddressInfo, Server } from 'node:net';
import { errorMessage, UsageError } from '@swefarm/shared';

export type Listener = {
  open(): Promise<void>;
  /** Stops listening and closes every connection; with a time, reopens after it. */
  shut(forMs?: number): Promise<void>;
  port(): number;
};

/** @param cut closes every connection */
export function createListener(
  server: Server,
  { host = '127.0.0.1', port: wanted = 0 }: { host?: string | undefined; port?: number | undefined },
  cut: () => void,
): Listener {
  let port = wanted;
  let reopening: NodeJS.Timeout | undefined;
  const open = async () => {
    clearTimeout(reopening);
    if (server.listening) return;
    await new Promise<void>((resolve, reject) => {
      const failed = (error: Error) =>
        reject(new UsageError(`cannot listen on ${host}:${port}: ${errorMessage(error)}`, { cause: error }));
      server.once('error', failed);
      server.listen(port, host, () => {
        server.off('error', failed);
        resolve();
      });
    });
    port = (server.address() as AddressInfo).port;
  };
  return {
    open,
    port: () => port,
    async shut(forMs) {
      clearTimeout(reopening);
      if (forMs !== undefined) reopening = setTimeout(() => void open().catch(console.error), forMs);
      await new Promise<void>((resolve) => {
        if (server.listening) server.close(() => resolve());
        else resolve();
        cut();
      });
    },
  };
}
