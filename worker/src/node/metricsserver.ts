/** HTTP server of the worker: metrics of this node for Prometheus, and probes. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostPort, reachableHost } from '@swefarm/shared';
import type { Registry } from 'prom-client';
import type { Probes } from './probes.ts';

export type MetricsServer = AsyncDisposable & { address: string };

type MetricsServerOptions = {
  host: string;
  /** Port to listen on; 0: any free port. */
  port: number;
  /** Host of the published address; null: `host`, or an address of this machine if the server listens on all addresses. */
  shownHost: string | null;
  probes: Pick<Probes, 'whyNotReady' | 'whyNotAlive'>;
  stop: AbortSignal;
};

/** Serves /metrics, /healthz (503 while draining), /readyz and /livez. */
export async function serveMetrics(
  registry: Registry,
  { host, port, shownHost, probes, stop }: MetricsServerOptions,
): Promise<MetricsServer> {
  const answers: Record<string, () => string | null | Promise<string | null>> = {
    '/healthz': () => (stop.aborted ? 'draining' : null),
    '/readyz': probes.whyNotReady,
    '/livez': probes.whyNotAlive,
  };
  const server: Server = createServer(async (request, response) => {
    if (request.url === '/metrics') {
      const text = await registry.metrics();
      response.writeHead(200, { 'content-type': registry.contentType }).end(text);
      return;
    }
    const answer = answers[request.url ?? ''];
    if (answer === undefined) {
      response.writeHead(404).end();
      return;
    }
    const problem = await answer();
    response
      .writeHead(problem === null ? 200 : 503, { 'content-type': 'text/plain' })
      .end(`${problem ?? 'ok'}\n`);
  });
  await once(server.listen(port, host), 'listening');
  const bound = server.address() as AddressInfo;
  return {
    address: hostPort(shownHost ?? reachableHost(host), bound.port),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await server[Symbol.asyncDispose]();
    },
  };
}
