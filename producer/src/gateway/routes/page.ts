/** The page at `/ui/` and what it asks for as JSON: the same routes over a farm and over a result file. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { PageSource } from '../../page/data.ts';
import { farmSource } from '../../page/farm.ts';
import type { GatewayDeps } from '../access/deps.ts';
import { servePageAssets } from './pageassets.ts';

const Run = z.object({ run: z.string() });
const Rollout = z.object({ rollout: z.string() });
/** `0`: from the start. */
const After = z.object({
  after: z
    .string()
    .regex(/^(\d+(-\d+)?|end)$/)
    .default('0'),
});
const TurnOf = Rollout.extend({ turn: z.coerce.number().int().nonnegative() });

export async function pageRoutes(app: FastifyInstance, { farm, log }: GatewayDeps): Promise<void> {
  await servePageAssets(app, log);
  servePageData(app, farmSource(farm), (request) => request.callers.length > 0);
}

/** `granted` says whether a request may ask the others. */
export function servePageData(
  instance: FastifyInstance,
  source: PageSource,
  granted: (request: FastifyRequest) => boolean,
): void {
  const app = instance.withTypeProvider<ZodTypeProvider>();
  app.addHook('onSend', async (_request, reply) => {
    reply.headers({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
  });
  app.get('/v1/page/access', { config: { public: true } }, async (request) => ({
    granted: granted(request),
  }));
  app.get('/v1/page/overview', () => source.overview());
  app.get('/v1/page/runs/:run', { schema: { params: Run, querystring: After } }, ({ params, query }) =>
    source.run(params.run, query.after),
  );
  app.get('/v1/page/rollouts/:rollout', { schema: { params: Rollout } }, ({ params }) =>
    source.rollout(params.rollout),
  );
  app.get(
    '/v1/page/rollouts/:rollout/turns/:turn/tokens',
    { schema: { params: TurnOf } },
    async ({ params }) => ({
      tokens: await source.tokens(params.rollout, params.turn),
    }),
  );
  app.get('/v1/page/rollouts/:rollout/log', { schema: { params: Rollout } }, async ({ params }) => ({
    log: await source.log(params.rollout),
  }));
  app.get(
    '/v1/page/rollouts/:rollout/live',
    { schema: { params: Rollout, querystring: After } },
    ({ params, query }) => source.live(params.rollout, query.after),
  );
}
