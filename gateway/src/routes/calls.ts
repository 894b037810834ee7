/** Routes whose requests wait for a rollout: NeMo Gym's agent and environment server, and `POST /v1/rollouts`. */
import { AggregateRequest, aggregate, GymRunRequest, globalConfig } from '@swefarm/trajectories';
import type { FastifyRequest } from 'fastify';
import type { App } from '../access/app.ts';
import { tokenOf } from '../access/authentication.ts';
import type { RouteDeps } from '../access/deps.ts';
import { Refusal } from '../access/refusal.ts';
import { createCallDeps, serveCall } from '../calls/servecall.ts';
import { RolloutAnswer, RolloutRequest, serveRollout } from '../calls/serverollout.ts';
import { documented, OF_BODY, refusals } from './answers.ts';

/** Default name of the entry in Gym's configuration. */
const ENTRY = 'swe_farm';

export function callRoutes(app: App, deps: RouteDeps): void {
  const callDeps = createCallDeps(app, deps);
  app.get('/', async () => ({ status: 'ok', agent: ENTRY }));
  app.get('/global_config_dict_yaml', async (request) => {
    const names = request.callers.map((caller) => caller.entry ?? ENTRY);
    return globalConfig([...new Set(names)], addressFor(request));
  });
  app.post('/aggregate_metrics', { schema: { body: AggregateRequest } }, async (request) =>
    aggregate(request.body.verify_responses),
  );
  const schema = { summary: 'Not served: rows are posted to /run', response: refusals(...OF_BODY, 501) };
  app.post('/v1/responses', { schema }, async () => {
    throw new Refusal(501, 'not_implemented', 'this agent runs whole rollouts: post the row to /run');
  });
  app.post('/run', { schema: { body: GymRunRequest } }, (request, reply) =>
    serveCall(callDeps, request, reply),
  );
  app.post(
    '/v1/rollouts',
    documented(
      'Play one rollout; repeat the request until it is done',
      RolloutAnswer,
      { body: RolloutRequest },
      ...([403, 404, 422] as const),
    ),
    (request, reply) => serveRollout(callDeps, request, reply),
  );
}

/** Returns the address that the caller used. The host contains the caller's token, because Gym's clients cannot add a header. */
function addressFor(request: FastifyRequest): { host: string; port: number } {
  const token = tokenOf(request);
  const credentials = token === null ? '' : `farm:${encodeURIComponent(token)}@`;
  const { host } = request.headers;
  if (!URL.canParse(`http://${host}`)) {
    const message = 'host: expected the name or address of this gateway, and its port';
    throw new Refusal(400, 'bad_request', message, { field: 'host' });
  }
  const url = new URL(`http://${host}`);
  return { host: `${credentials}${url.hostname}`, port: Number(url.port || 80) };
}
