/** Routes of runs: submit a run, list runs, cancel. */
import { createHash } from 'node:crypto';
import { chosenSha256 } from '@swefarm/datasets';
import {
  asTree,
  merge,
  PassEstimate,
  passEstimate,
  recordFromSettings,
  requireKnownKeys,
  requireSameSettings,
  type SettingsTree,
  submit,
  withShownPictures,
} from '@swefarm/runs';
import {
  GroupCount,
  newId,
  parseRolloutId,
  RunCounts,
  RunRecord,
  startedRollouts,
  UnreadableRun,
  UsageError,
} from '@swefarm/shared';
import { findPrice, NO_PRICE, withPrice } from '@swefarm/trajectories';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { App } from '../access/app.ts';
import { type Caller, findCaller } from '../access/callers.ts';
import {
  requireCardAllowed,
  requireInstanceAllowed,
  requireInstanceCount,
  requireKindAllowed,
  requirePromptsAllowed,
  requireRunSize,
  requireWithinCeilings,
} from '../access/ceilings.ts';
import type { GatewayDeps, RouteDeps } from '../access/deps.ts';
import { keyFor, storeKey } from '../access/policykeys.ts';
import { Refusal, settingsRefusal } from '../access/refusal.ts';
import { documented } from './answers.ts';
import { readInstances, wholeDataset } from './runrows.ts';

const RunSubmission = z.strictObject({
  instances: z
    .array(z.union([z.string(), z.looseObject({})], 'expected a row, or an id of the dataset of serve'))
    .min(1)
    .optional()
    .meta({
      description:
        'rows as in a dataset file, or ids of the dataset that serve was started with; with `until` they may be left out: all of that dataset',
    }),
  group_size: z.number().int().positive().default(1),
  until: z.record(z.string(), z.unknown()).optional().meta({
    description: 'draws instances until enough groups are selected; its keys are those of `run.until`',
  }),
  run: z
    .record(z.string(), z.unknown())
    .default({})
    .meta({ description: "keys of a run's record, as in a --run-config file" }),
});

export const RunParams = z.object({ run: z.string().regex(/^[a-z0-9]+$/, 'expected a run id') });

const RunCancellation = z
  .strictObject({ rollouts: z.array(z.string()).min(1).optional() })
  .nullish()
  .meta({ description: 'rollouts to cancel; default: all of the run' });

const SubmittedRun = z.object({
  run_id: z.string(),
  rollouts: z.number().int(),
  queued: z.number().int().meta({ description: 'rollouts that this request queued' }),
});

const { created_at, kind, open, group_size, dataset } = RunRecord.shape;
const RunSummary = z.object({ run_id: z.string(), created_at, kind, open, group_size, dataset });

const RunList = z.object({
  runs: z.array(RunSummary),
  unreadable: z.array(UnreadableRun).meta({ description: 'runs with unreadable records' }),
});

const RunDetail = RunSummary.extend({
  left: z.number().int().meta({ description: 'uncommitted rollouts' }),
  counts: RunCounts,
  groups: z.record(z.string(), GroupCount).meta({ description: 'by instance id' }),
  pass_rate: PassEstimate.nullable().meta({
    description:
      'of a run with `until`: estimate for the dataset, corrected for the draws, with its 95 % interval',
  }),
});

const Cancelled = z.object({
  cancelled: z.union([z.string(), z.array(z.string())]).meta({ description: 'the run, or the rollouts' }),
});

export function runRoutes(app: App, deps: RouteDeps): void {
  const { farm } = deps;
  const submission = documented('Submit a run', SubmittedRun, { body: RunSubmission }, 403, 404, 409, 422);
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
      const { isNew, ...submitted } = await submitRun(deps, request);
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
  const cancellation = { params: RunParams, body: RunCancellation };
  app.post(
    '/v1/runs/:run/cancel',
    documented('Cancel a run, or some of its rollouts', Cancelled, cancellation, 404),
    ({ params, body }) => cancelRun(deps, params.run, body?.rollouts),
  );
}

async function submitRun(deps: RouteDeps, request: FastifyRequest & { body: z.infer<typeof RunSubmission> }) {
  const { farm, config, signal, quota } = deps;
  const caller = findCaller(request);
  const { instances: given, until } = request.body;
  const run = until === undefined ? request.body.run : { ...request.body.run, until };
  namingFields(() => requireKnownKeys('run', run));
  requireInstanceCount(given?.length ?? 0, config);
  const instances = given ? readInstances(given, deps) : wholeDataset(deps, run);
  for (const [index, one] of instances.entries()) requireInstanceAllowed(one, config, `instances.${index}.`);
  const idempotencyKey = request.headers['idempotency-key'];
  const runId =
    typeof idempotencyKey === 'string' && idempotencyKey !== ''
      ? runIdFrom(caller.name, idempotencyKey)
      : newId();
  const operator = merge(merge({}, deps.settings ?? {}), caller.run);
  requireKindAllowed(request, caller, operator, run);
  requirePromptsAllowed(operator, run);
  requireCardAllowed(run, config);
  const dataset = { path: `rows of ${caller.name}`, sha256: chosenSha256(instances), instances };
  const settings = merge(operator, { ...run, group_size: request.body.group_size });
  const keyless = namingFields(() => recordFromSettings(settings, runId, dataset, null));
  namingFields(() => withShownPictures(keyless, instances));
  requireWithinCeilings(keyless, config, 'run.');
  requireRunSize(keyless, config);
  // The key is stored after the checks of the request, so that a bad request leaves no key in Redis.
  const record = priced(deps, await withKey(deps, keyless, caller, operator, run));
  const stored = await farm.runs.get(runId);
  if (stored) requireSame(stored, record);
  const rollouts = startedRollouts(record);
  const submitted = await quota.admit(caller, stored ? 0 : rollouts, async () => ({
    value: await submit(farm, { record: stored ?? record, instances }, signal),
    booked: { run_id: runId, rollouts },
  }));
  return {
    isNew: stored === null,
    run_id: runId,
    rollouts: submitted.rollouts.length,
    queued: submitted.queued,
  };
}

/** Returns the run id of a caller's idempotency key. The id begins with a letter. */
const runIdFrom = (caller: string, key: string): string =>
  `k${BigInt(`0x${createHash('sha256').update(`${caller}\n${key}`).digest('hex')}`)
    .toString(36)
    .slice(0, 20)}`;

/** Stores the API key of the policy, and returns the record with the name of the stored key (null: no key). */
async function withKey(
  { farm, config }: RouteDeps,
  record: RunRecord,
  caller: Caller,
  operator: SettingsTree,
  run: SettingsTree,
): Promise<RunRecord> {
  const key = keyFor(caller, asTree(operator.policy).urls, asTree(run.policy).urls);
  const api_key_ref = await storeKey(farm, key, config.policy_api_key_ttl_seconds);
  return record.policy ? { ...record, policy: { ...record.policy, api_key_ref } } : record;
}

function priced({ prices, log }: RouteDeps, record: RunRecord): RunRecord {
  if (!prices || record.policy === null) return record;
  const price = findPrice(prices, record.policy.model);
  if (price === null) log.warn({ run: record.run_id, model: record.policy.model }, NO_PRICE);
  return withPrice(record, price);
}

const IN_RUN = { url: 'run.policy.urls', model: 'run.policy.model' };

/** Turns errors of settings into refusals that name the field of the request. */
function namingFields<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw settingsRefusal(error, 'run.', IN_RUN);
  }
}

function requireSame(stored: RunRecord, submitted: RunRecord): void {
  try {
    requireSameSettings(stored, submitted);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new Refusal(409, 'run_differs', error.message, { field: 'idempotency-key', cause: error });
  }
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
  const pass_rate = await passEstimate(farm, run);
  return { ...summaryOf(run), left, counts, groups: Object.fromEntries(groups), pass_rate };
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
