/** Routes of runs: list runs, read results, cancel; submitrun.ts submits them. */
import {
  GroupCount,
  parseRolloutId,
  Result,
  RunCounts,
  RunRecord,
  UnreadableResult,
  UnreadableRun,
} from '@swefarm/shared';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import type { App } from '../access/app.ts';
import type { GatewayDeps, RouteDeps } from '../access/deps.ts';
import { Refusal } from '../access/refusal.ts';
import { closedSignal } from '../calls/callconnection.ts';
import { documented } from './answers.ts';
import { Planned, RunSubmission, SubmissionQuery, SubmittedRun, submitRun } from './submitrun.ts';

const RunParams = z.object({ run: z.string().regex(/^[a-z0-9]+$/, 'expected a run id') });

const ResultsQuery = z.object({
  after: z
    .string()
    .regex(/^\d+(-\d+)?$/, 'expected the last_id of an earlier answer')
    .default('0')
    .meta({ description: 'last_id of the previous answer; 0: from the start' }),
  wait_seconds: z.coerce.number().min(0).max(3600).default(0),
  count: z.coerce.number().int().min(1).max(1000).default(200),
});

const RunCancellation = z
  .strictObject({ rollouts: z.array(z.string()).min(1).optional() })
  .nullish()
  .meta({ description: 'rollouts to cancel; default: all of the run' });

const { created_at, kind, open, group_size, dataset, order, forecast } = RunRecord.shape;
const RunSummary = z.object({ run_id: z.string(), created_at, kind, open, group_size, dataset });

const RunList = z.object({
  runs: z.array(RunSummary),
  unreadable: z.array(UnreadableRun).meta({ description: 'runs with unreadable records' }),
});

const RunDetail = RunSummary.extend({
  order,
  forecast,
  left: z.number().int().meta({ description: 'uncommitted rollouts' }),
  counts: RunCounts,
  groups: z.record(z.string(), GroupCount).meta({ description: 'by instance id' }),
});

const ResultList = z.object({
  results: z.array(Result),
  unreadable: z.array(UnreadableResult).meta({ description: 'unreadable results, which are skipped' }),
  last_id: z.string().meta({ description: 'the next `after`' }),
});

const Cancelled = z.object({
  cancelled: z.union([z.string(), z.array(z.string())]).meta({ description: 'the run, or the rollouts' }),
});

export function runRoutes(app: App, deps: RouteDeps): void {
  const { farm } = deps;
  const submission = documented(
    'Submit a run, or forecast it',
    z.union([SubmittedRun, Planned]),
    { body: RunSubmission, querystring: SubmissionQuery },
    ...([403, 404, 409, 422] as const),
  );
  app.post(
    '/v1/runs',
    {
      schema: {
        ...submission.schema,
        description:
          'With the header `idempotency-key` the same key is the same run (200); other settings under it are refused with 409.',
        response: { ...submission.schema.response, 201: SubmittedRun },
      },
    },
    async (request, reply) => {
      const answer = await submitRun(deps, request);
      if ('forecast' in answer) return answer;
      const { isNew, ...submitted } = answer;
      return await reply.code(isNew ? 201 : 200).send(submitted);
    },
  );
  app.get('/v1/runs', documented('List runs', RunList, {}), async () => {
    const [runs, unreadable] = await Promise.all([farm.runs.list(), farm.runs.unreadable()]);
    return { runs: runs.map(summaryOf), unreadable };
  });
  app.get(
    '/v1/runs/:run',
    documented('Counts, groups and what is left of a run', RunDetail, { params: RunParams }, 404),
    ({ params }) => describeRun(deps, params.run),
  );
  app.get(
    '/v1/runs/:run/results',
    documented('Results as they finish', ResultList, { params: RunParams, querystring: ResultsQuery }, 404),
    (request, reply) => readResults(deps, request.params.run, request.query, reply),
  );
  const cancellation = { params: RunParams, body: RunCancellation };
  app.post(
    '/v1/runs/:run/cancel',
    documented('Cancel a run, or some of its rollouts', Cancelled, cancellation, 404),
    ({ params, body }) => cancelRun(deps, params.run, body?.rollouts),
  );
}

/** Returns the record of a run. Throws Refusal 404. */
export async function requireRun({ farm }: GatewayDeps, runId: string): Promise<RunRecord> {
  const run = await farm.runs.get(runId);
  if (run) return run;
  throw new Refusal(404, 'unknown_run', `run: no run ${runId} at ${farm.address}`, { field: 'run' });
}

const summaryOf = ({ run_id, created_at, kind, open, group_size, dataset }: RunRecord) => ({
  run_id,
  created_at,
  kind,
  open,
  group_size,
  dataset,
});

async function describeRun(deps: GatewayDeps, runId: string): Promise<z.infer<typeof RunDetail>> {
  const { farm } = deps;
  const run = await requireRun(deps, runId);
  const [counts, groups] = await Promise.all([farm.results.counts(runId), farm.results.groups(runId)]);
  const left = [...groups.values()].reduce((sum, group) => sum + Math.max(0, group.left), 0);
  const { order, forecast } = run;
  return { ...summaryOf(run), order, forecast, left, counts, groups: Object.fromEntries(groups) };
}

async function readResults(
  deps: GatewayDeps,
  runId: string,
  { after, wait_seconds, count }: z.infer<typeof ResultsQuery>,
  reply: FastifyReply,
) {
  const { farm, signal } = deps;
  await requireRun(deps, runId);
  const closed = closedSignal(reply);
  const options = { count, blockMs: wait_seconds * 1000, signal: AbortSignal.any([closed, signal]) };
  try {
    const { results, unreadable, last_id } = await farm.results.read(runId, after, options);
    return { results: results.map(({ result }) => result), unreadable, last_id };
  } catch (error) {
    if (closed.aborted) return reply.hijack();
    if (signal.aborted) return { results: [], unreadable: [], last_id: after };
    throw error;
  }
}

async function cancelRun(deps: GatewayDeps, runId: string, rollouts: string[] | undefined) {
  const { farm } = deps;
  await requireRun(deps, runId);
  const foreign = rollouts?.find((id) => parseRolloutId(id).runId !== runId);
  if (foreign !== undefined) {
    throw new Refusal(400, 'bad_request', `rollouts: ${foreign} is not a rollout of run ${runId}`, {
      field: 'rollouts',
    });
  }
  if (rollouts) await farm.cancel.cancelRollouts(rollouts);
  else await farm.cancel.cancelRun(runId);
  return { cancelled: rollouts ?? runId };
}
