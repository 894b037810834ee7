/** Routes of the page at `/ui/` and of its JSON data, which comes from a farm or from a result file. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { GatewayDeps } from '../access/deps.ts';
import {
  MOST_TREND_RUNS,
  PageDetail,
  PageLive,
  PageOverview,
  PageRun,
  type PageSource,
  PageTokens,
  PageTrends,
} from '../page/data.ts';
import { FarmSource } from '../page/farmsource.ts';
import { pageTokens } from '../page/records.ts';
import { refusals } from './answers.ts';
import { servePageAssets } from './pageassets.ts';

const RunParams = z.object({ run: z.string() });
const RolloutParams = z.object({ rollout: z.string() });
const TurnParams = RolloutParams.extend({ turn: z.coerce.number().int().nonnegative() });
const Query = z.object({
  after: z
    .string()
    .regex(/^(\d+(-\d+)?|end)$/)
    .default('0')
    .meta({ description: 'cursor of the previous answer; 0: from the start' }),
});
const TrendsQuery = z.object({
  runs: z
    .string()
    .regex(/^[\w-]+(,[\w-]+)*$/, 'expected ids of runs: a,b,c')
    .refine((text) => text.split(',').length <= MOST_TREND_RUNS, `expected at most ${MOST_TREND_RUNS} runs`)
    .optional()
    .meta({ description: 'ids of runs, separated by commas; without: the newest runs' }),
  each: z.enum(['true', 'false']).default('false').meta({ description: 'a series for each run' }),
});
const tags = ['page'];

export async function pageRoutes(app: FastifyInstance, { farm, log }: GatewayDeps): Promise<void> {
  await servePageAssets(app, log);
  servePageData(app, new FarmSource(farm), (request) => request.callers.length > 0);
}

/** @param isGranted returns whether the request's token is valid for the routes that are not public */
export function servePageData(
  app: FastifyInstance,
  source: PageSource,
  isGranted: (request: FastifyRequest) => boolean,
): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  app.addHook('onSend', async (_request, reply) => {
    reply.headers({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
  });
  typed.get(
    '/v1/page/access',
    {
      config: { public: true },
      schema: {
        tags,
        summary: 'Whether the token of this request opens the page',
        security: [],
        response: { 200: z.object({ granted: z.boolean() }), ...refusals() },
      },
    },
    async (request) => ({ granted: isGranted(request) }),
  );
  typed.get(
    '/v1/page/overview',
    { schema: { tags, summary: 'Runs, queue and workers', response: { 200: PageOverview, ...refusals() } } },
    () => source.overview(),
  );
  typed.get(
    '/v1/page/runs/:run',
    {
      schema: {
        tags,
        summary: 'Rollouts of a run since a cursor',
        params: RunParams,
        querystring: Query,
        response: { 200: PageRun, ...refusals(400, 404) },
      },
    },
    ({ params, query }) => source.run(params.run, query.after),
  );
  typed.get(
    '/v1/page/trends',
    {
      schema: {
        tags,
        summary: 'Results of runs over policy versions and over time',
        querystring: TrendsQuery,
        response: { 200: PageTrends, ...refusals(400) },
      },
    },
    ({ query }) => source.trends(query.runs?.split(',') ?? null, query.each === 'true'),
  );
  rolloutDataRoutes(app, source);
}

function rolloutDataRoutes(app: FastifyInstance, source: PageSource): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  const params = RolloutParams;
  const failures = refusals(400, 404);
  typed.get(
    '/v1/page/rollouts/:rollout',
    { schema: { tags, summary: 'One rollout', params, response: { 200: PageDetail, ...failures } } },
    (request) => source.rollout(request.params.rollout),
  );
  typed.get(
    '/v1/page/rollouts/:rollout/turns/:turn/tokens',
    {
      schema: {
        tags,
        summary: 'Token ids of one turn, from 0',
        params: TurnParams,
        response: { 200: z.object({ tokens: PageTokens.nullable() }), ...failures },
      },
    },
    async ({ params: { rollout, turn } }) => ({ tokens: pageTokens(await source.artifact(rollout), turn) }),
  );
  typed.get(
    '/v1/page/rollouts/:rollout/log',
    {
      schema: {
        tags,
        summary: 'The test log',
        params,
        response: { 200: z.object({ log: z.string().nullable() }), ...failures },
      },
    },
    async (request) => ({ log: (await source.artifact(request.params.rollout))?.test_log ?? null }),
  );
  typed.get(
    '/v1/page/rollouts/:rollout/live',
    {
      schema: {
        tags,
        summary: 'Turns of a running rollout since a cursor',
        params,
        querystring: Query,
        response: { 200: PageLive, ...failures },
      },
    },
    (request) => source.live(request.params.rollout, request.query.after),
  );
}
