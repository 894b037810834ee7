/** The worker's HTTP server: metrics of this node for Prometheus, and a liveness probe. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostPort, reachableHost } from '@swefarm/shared';
import type { Registry } from 'prom-client';

export type MetricsServer = AsyncDisposable & { address: string };

export type MetricsServerOptions = {
  host: string;
  /** 0: any free port. */
  port: number;
  /** Host of the address that others use; null: `host`, or an address of this machine when it listens on all. */
  shownHost: string | null;
  healthy: () => boolean;
};

/** Serves /metrics and /healthz; the result's `address` is where others reach them. */
export async function serveMetrics(
  registry: Registry,
  { host, port, shownHost, healthy }: MetricsServerOptions,
): Promise<MetricsServer> {
  const server: Server = createServer(async (request, response) => {
    if (request.url === '/metrics') {
      const text = await registry.metrics();
      response.writeHead(200, { 'content-type': registry.contentType }).end(text);
    } else if (request.url === '/healthz') {
      response
        .writeHead(healthy() ? 200 : 503, { 'content-type': 'text/plain' })
        .end(healthy() ? 'ok\n' : 'draining\n');
    } else {
      response.writeHead(404).end();
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, host, resolve);
  });
  const bound = server.address() as AddressInfo;
  return {
    address: hostPort(shownHost ?? reachableHost(host), bound.port),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
