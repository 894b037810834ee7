/** The gateway's HTTP server. Thousands of connections may wait for hours. */
import type { AddressInfo } from 'node:net';
import { readPrices } from '@swefarm/trajectories';
import type { FastifyReply } from 'fastify';
import { type App, createApp } from './access/app.ts';
import { authenticate } from './access/authentication.ts';
import { type Caller, readCallers } from './access/callers.ts';
import type { GatewayDeps, Routes } from './access/deps.ts';
import { warnOfIdleKeys } from './access/policykeys.ts';
import { createQuota, limitRequests } from './access/quota.ts';
import { refusalOf } from './access/refusal.ts';
import { checkOpenSettings } from './calls/opensettings.ts';
import { injectFaults } from './dryrun/faults.ts';
import { callRoutes } from './routes/calls.ts';
import { monitoringRoutes } from './routes/monitoring.ts';
import { openapiRoutes, registerOpenapi } from './routes/openapi.ts';
import { pageRoutes } from './routes/page.ts';
import { policyRoutes } from './routes/policy.ts';
import { rolloutRoutes } from './routes/rollouts.ts';
import { runResultRoutes } from './routes/runresults.ts';
import { runRoutes } from './routes/runs.ts';
import { sessionInputRoutes } from './routes/sessioninputs.ts';
import { sessionRoutes } from './routes/sessions.ts';

export type { GatewayDeps } from './access/deps.ts';

export interface Gateway extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  readonly url: string;
}

const ROUTES: readonly Routes[] = [
  callRoutes,
  monitoringRoutes,
  openapiRoutes,
  pageRoutes,
  policyRoutes,
  rolloutRoutes,
  runRoutes,
  runResultRoutes,
  sessionRoutes,
  sessionInputRoutes,
];

/** Time in which a request must arrive. The time until the answer is not limited. */
const RECEIVE_MS = 300_000;
const HEADERS_MS = 60_000;
/** Idle time of a connection, longer than in Gym's client (aiohttp, 15 s), so that the client closes idle connections first. */
const IDLE_MS = 75_000;
const TCP_KEEPALIVE_MS = 30_000;
const BACKLOG = 4096;

/**
 * Starts the gateway on `config.gateway_host` and `gateway_port` (0: a free port). Disposal stops the gateway and closes connections.
 *
 * @throws UsageError for a bad callers file, a bad file of prices or settings that an open run cannot have; the error of `listen`
 */
export async function startGateway(
  deps: GatewayDeps,
  options: { callers?: readonly Caller[] } = {},
): Promise<Gateway> {
  const { config, log } = deps;
  const app = createApp(
    {
      bodyLimit: config.gateway_body_bytes,
      requestTimeout: RECEIVE_MS,
      keepAliveTimeout: IDLE_MS,
      connectionTimeout: 0,
      http: { headersTimeout: HEADERS_MS, keepAlive: true, keepAliveInitialDelay: TCP_KEEPALIVE_MS },
      frameworkErrors: (error, _request, reply) => {
        const { status, body } = refusalOf(error);
        void (reply as FastifyReply).code(status).send(body);
      },
    },
    log,
  );
  await registerRoutes(app, deps, options.callers ?? readCallers(config));
  await app.listen({ host: config.gateway_host, port: config.gateway_port, backlog: BACKLOG });
  const { address, port, family } = app.server.address() as AddressInfo;
  const shown = family === 'IPv6' ? `[${address}]` : address;
  return {
    host: address,
    port,
    url: `http://${shown}:${port}`,
    [Symbol.asyncDispose]: () => app.close(),
  };
}

/** Registers all routes behind authentication and quotas. Throws the UsageErrors of {@link startGateway}. */
export async function registerRoutes(app: App, deps: GatewayDeps, callers: readonly Caller[]): Promise<void> {
  const settings = deps.settings ?? {};
  checkOpenSettings(settings, callers);
  warnOfIdleKeys(callers, settings, deps.log);
  app.setNotFoundHandler(async (request, reply) => {
    await reply.code(404).send({
      error: { code: 'not_found', message: `${request.method} ${request.url}: no such route` },
    });
  });
  if (deps.faults) injectFaults(app, deps.faults, deps.log);
  authenticate(app, callers);
  limitRequests(app);
  await registerOpenapi(app);
  const { prices: file } = deps.config;
  const prices = file === null ? null : readPrices(file);
  const routeDeps = { ...deps, quota: createQuota(deps.farm), prices };
  for (const routes of ROUTES) await app.register(async (scope) => await routes(scope, routeDeps));
}
