/** Routes of runs: list runs, cancel; submitrun.ts submits them. */
import { PassEstimate, passEstimate } from '@swefarm/runs';
import { GroupCount, parseRolloutId, RunCounts, RunRecord, UnreadableRun } from '@swefarm/shared';
import { z } from 'zod';
import type { App } from '../access/app.ts';
import type { GatewayDeps, RouteDeps } from '../access/deps.ts';
import { Refusal } from '../access/refusal.ts';
import { documented } from './answers.ts';
import { Planned, RunSubmission, SubmissionQuery, SubmittedRun, submitRun } from './submitrun.ts';

export const RunParams = z.object({ run: z.string().regex(/^[a-z0-9]+$/, 'expected a run id') });

const RunCancellation = z
  .strictObject({
    rollouts: z.array(z.string()).min(1).optional(),
    groups: z.array(z.string()).min(1).optional().meta({ description: 'instance ids of groups' }),
  })
  .nullish()
  .meta({ description: 'rollouts and groups to cancel; default: the whole run' });
type RunCancellation = z.infer<typeof RunCancellation>;

const { created_at, kind, dry_run, open, group_size, dataset, order, forecast } = RunRecord.shape;
const RunSummary = z.object({ run_id: z.string(), created_at, kind, dry_run, open, group_size, dataset });

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
  pass_rate: PassEstimate.nullable().meta({
    description:
      'of a run with `until`: estimate for the dataset, corrected for the draws, with its 95 % interval',
  }),
});

const Heartbeat = z.strictObject({
  run_ids: z.array(RunParams.shape.run).max(10_000),
  lease_seconds: z
    .number()
    .min(0)
    .max(7 * 86_400)
    .meta({
      description: 'the runs are cancelled after this time without a heartbeat; 0: ends the lease',
    }),
});
const AliveRuns = z.object({ alive: z.array(z.string()).meta({ description: 'runs that still exist' }) });

const Cancelled = z.object({
  cancelled: z.union([z.string(), z.array(z.string())]).meta({
    description: 'the run id, or the rollout ids and the instance ids of the groups',
  }),
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
  app.post(
    '/v1/runs/heartbeat',
    documented('Renew the leases of runs', AliveRuns, { body: Heartbeat }),
    async ({ body: { run_ids, lease_seconds } }) => {
      if (lease_seconds > 0) return { alive: await farm.runLeases.renew(run_ids, lease_seconds * 1000) };
      await Promise.all(run_ids.map((id) => farm.runLeases.drop(id)));
      return { alive: [] };
    },
  );
  const cancellation = { params: RunParams, body: RunCancellation };
  app.post(
    '/v1/runs/:run/cancel',
    documented('Cancel a run, or some of its rollouts and groups', Cancelled, cancellation, 404),
    ({ params, body }) => cancelRun(deps, params.run, body),
  );
}

/** Returns the record of a run. Throws Refusal 404. */
export async function requireRun({ farm }: GatewayDeps, runId: string): Promise<RunRecord> {
  const run = await farm.runs.get(runId);
  if (run) return run;
  throw new Refusal(404, 'unknown_run', `run: no run ${runId} at ${farm.address}`, { field: 'run' });
}

const summaryOf = ({ run_id, created_at, kind, dry_run, open, group_size, dataset }: RunRecord) => ({
  run_id,
  created_at,
  kind,
  ...(dry_run ? { dry_run } : {}),
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
  const pass_rate = await passEstimate(farm, run);
  return { ...summaryOf(run), order, forecast, left, counts, groups: Object.fromEntries(groups), pass_rate };
}

async function cancelRun(deps: GatewayDeps, runId: string, body: RunCancellation) {
  const { farm } = deps;
  const { rollouts, groups } = body ?? {};
  await requireRun(deps, runId);
  const foreign = rollouts?.find((id) => parseRolloutId(id).runId !== runId);
  if (foreign !== undefined) {
    throw new Refusal(400, 'bad_request', `rollouts: ${foreign} is not a rollout of run ${runId}`, {
      field: 'rollouts',
    });
  }
  const known = new Set(groups && (await farm.runs.instanceIds(runId)));
  const unknown = groups?.find((id) => !known.has(id));
  if (unknown !== undefined) {
    throw new Refusal(400, 'bad_request', `groups: run ${runId} has no instance ${unknown}`, {
      field: 'groups',
    });
  }
  if (!rollouts && !groups) await farm.cancel.cancelRun(runId);
  for (const id of groups ?? []) await farm.cancel.cancelGroup(runId, id);
  if (rollouts) await farm.cancel.cancelRollouts(rollouts);
  return { cancelled: rollouts || groups ? [...(rollouts ?? []), ...(groups ?? [])] : runId };
}
