/** HTTP server of the worker: metrics of this node for Prometheus, and probes. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostPort, reachableHost } from '@swefarm/shared';
import type { Node } from './node.ts';
import type { Probes } from './probes.ts';

/** Serves /metrics, /healthz (503 while draining), /readyz and /livez. Returns null when the configuration has port 0. */
export async function serveMetrics(
  { config, metrics, stop }: Node,
  probes: Probes,
): Promise<(AsyncDisposable & { address: string }) | null> {
  const { metrics_port: port, metrics_host: host, metrics_address: shownHost } = config;
  if (port === 0) return null;
  const { registry } = metrics;
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
  await once(server.listen(port === 'auto' ? 0 : port, host), 'listening');
  const bound = server.address() as AddressInfo;
  return {
    address: hostPort(shownHost ?? reachableHost(host), bound.port),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await server[Symbol.asyncDispose]();
    },
  };
}
