/** Routes of the page at `/ui/` and of its JSON data, which comes from a farm or from a result file. */
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { App } from '../access/app.ts';
import type { GatewayDeps } from '../access/deps.ts';
import {
  MOST_TREND_RUNS,
  PageBranches,
  PageDetail,
  PageLive,
  PageOutput,
  PageOverview,
  PageRun,
  type PageSource,
  PageTokens,
  PageTrends,
} from '../page/data.ts';
import { FarmSource } from '../page/farmsource.ts';
import { pageOutput, pageTokens } from '../page/records.ts';
import { documented } from './answers.ts';
import { servePageAssets } from './pageassets.ts';
import { RolloutParams } from './rollouts.ts';

const RunParams = z.object({ run: z.string() });
const TurnParams = RolloutParams.extend({ turn: z.coerce.number().int().nonnegative() });
const OutputParams = RolloutParams.extend({ name: z.string() });
const LineQuery = z.object({
  line: z.string().optional().meta({ description: 'id of a line beside the main line' }),
});
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

export async function pageRoutes(app: App, { farm, log }: GatewayDeps): Promise<void> {
  await servePageAssets(app, log);
  servePageData(app, new FarmSource(farm), (request) => request.callers.length > 0);
}

/** @param isGranted returns whether the request's token is valid for the routes that are not public */
export function servePageData(
  app: App,
  source: PageSource,
  isGranted: (request: FastifyRequest) => boolean,
): void {
  app.addHook('onSend', async (_request, reply) => {
    reply.headers({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
  });
  const granted = z.object({ granted: z.boolean() });
  const access = documented('Whether the token of this request opens the page', granted, { security: [] });
  app.get('/v1/page/access', { ...access, config: { public: true } }, async (request) => ({
    granted: isGranted(request),
  }));
  app.get('/v1/page/overview', documented('Runs, queue and workers', PageOverview, {}), () =>
    source.overview(),
  );
  app.get(
    '/v1/page/runs/:run',
    documented('Rollouts of a run since a cursor', PageRun, { params: RunParams, querystring: Query }, 404),
    ({ params, query }) => source.run(params.run, query.after),
  );
  app.get(
    '/v1/page/branches/:id',
    documented(
      'Branches below a run or a rollout',
      PageBranches,
      { params: z.object({ id: z.string().meta({ description: 'id of a run or a rollout' }) }) },
      404,
    ),
    ({ params }) => source.branches(params.id),
  );
  app.get(
    '/v1/page/trends',
    documented('Results of runs over policy versions and over time', PageTrends, {
      querystring: TrendsQuery,
    }),
    ({ query }) => source.trends(query.runs?.split(',') ?? null, query.each === 'true'),
  );
  serveRollouts(app, source);
}

function serveRollouts(app: App, source: PageSource): void {
  const params = RolloutParams;
  app.get('/v1/page/rollouts/:rollout', documented('One rollout', PageDetail, { params }, 404), (request) =>
    source.rollout(request.params.rollout),
  );
  const tokens = z.object({ tokens: PageTokens.nullable() });
  app.get(
    '/v1/page/rollouts/:rollout/turns/:turn/tokens',
    documented('Token ids of one turn, from 0', tokens, { params: TurnParams, querystring: LineQuery }, 404),
    async ({ params: { rollout, turn }, query: { line = null } }) => ({
      tokens: pageTokens(await source.artifact(rollout), turn, line),
    }),
  );
  app.get(
    '/v1/page/rollouts/:rollout/outputs/:name',
    documented('A stored output of the agent', PageOutput, { params: OutputParams }, 404),
    async ({ params: { rollout, name } }) => ({ output: pageOutput(await source.artifact(rollout), name) }),
  );
  const log = z.object({ log: z.string().nullable() });
  app.get(
    '/v1/page/rollouts/:rollout/log',
    documented('The test log', log, { params }, 404),
    async (request) => ({ log: (await source.artifact(request.params.rollout))?.test_log ?? null }),
  );
  app.get(
    '/v1/page/rollouts/:rollout/live',
    documented('Turns of a running rollout since a cursor', PageLive, { params, querystring: Query }, 404),
    (request) => source.live(request.params.rollout, request.query.after),
  );
}
