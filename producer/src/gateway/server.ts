/** The gateway's HTTP server: connections that are held for hours, thousands of them, and an orderly end. */
import type { AddressInfo } from 'node:net';
import Fastify, { type FastifyReply } from 'fastify';
import { serializerCompiler, validatorCompiler } from 'fastify-type-provider-zod';
import { authenticate } from './access/authentication.ts';
import { type Caller, readCallers } from './access/callers.ts';
import type { GatewayDeps, Routes } from './access/deps.ts';
import { warnOfIdleKeys } from './access/policykeys.ts';
import { createQuota, limitRequests } from './access/quota.ts';
import { answerErrors, refusalOf } from './access/refusal.ts';
import { checkOpenSettings } from './calls/opensettings.ts';
import { gymRoutes } from './routes/gym.ts';
import { monitoringRoutes } from './routes/monitoring.ts';
import { pageRoutes } from './routes/page.ts';
import { policyRoutes } from './routes/policy.ts';
import { runRoutes } from './routes/runs.ts';
import { sessionRoutes } from './routes/sessions.ts';

export type { GatewayDeps } from './access/deps.ts';

export interface Gateway extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** `http://host:port` */
  readonly url: string;
}

const ROUTES: readonly Routes[] = [
  gymRoutes,
  monitoringRoutes,
  pageRoutes,
  policyRoutes,
  runRoutes,
  sessionRoutes,
];

/** A request must arrive within this time; how long its answer takes is not limited. */
const RECEIVE_MS = 300_000;
const HEADERS_MS = 60_000;
/** Longer than the idle time after which Gym's client (aiohttp, 15 s) closes, so that it never writes into our close. */
const IDLE_MS = 75_000;
/** A peer that vanished without a word is noticed. */
const TCP_KEEPALIVE_MS = 30_000;
const BACKLOG = 4096;

/**
 * Listens on `config.gateway_host` and `gateway_port` (0: a free one) until disposed; held connections are closed then.
 *
 * @throws UsageError for a bad callers file and for settings that no open run can have; the error of `listen` when the address is taken
 */
export async function startGateway(
  deps: GatewayDeps,
  options: { callers?: readonly Caller[] } = {},
): Promise<Gateway> {
  const { config, log } = deps;
  const app = Fastify({
    bodyLimit: config.gateway_body_bytes,
    requestTimeout: RECEIVE_MS,
    keepAliveTimeout: IDLE_MS,
    connectionTimeout: 0,
    forceCloseConnections: true,
    routerOptions: { maxParamLength: 500 },
    http: { headersTimeout: HEADERS_MS, keepAlive: true, keepAliveInitialDelay: TCP_KEEPALIVE_MS },
    frameworkErrors: (error, _request, reply) => {
      const { status, body } = refusalOf(error);
      void (reply as FastifyReply).code(status).send(body);
    },
  });
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  app.setErrorHandler(answerErrors(log));
  app.setNotFoundHandler(async (request, reply) => {
    await reply.code(404).send({
      error: { code: 'not_found', message: `${request.method} ${request.url}: there is no such route` },
    });
  });
  const callers = options.callers ?? readCallers(config);
  checkOpenSettings(deps.settings ?? {}, callers);
  warnOfIdleKeys(callers, deps.settings ?? {}, log);
  authenticate(app, callers);
  limitRequests(app);
  const served = { ...deps, quota: createQuota(deps.farm) };
  for (const routes of ROUTES) await app.register(async (scope) => await routes(scope, served));
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
