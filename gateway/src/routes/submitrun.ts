/** Submits a run over HTTP, or forecasts it: `POST /v1/runs`. */
import { chosenSha256 } from '@swefarm/datasets';
import { weightWarnings } from '@swefarm/grading';
import {
  asTree,
  forecastRun,
  merge,
  recordFromSettings,
  requireForecast,
  requireKnownKeys,
  requireSameSettings,
  type SettingsTree,
  submit,
  withShownPictures,
} from '@swefarm/runs';
import {
  CancelReason,
  idOf,
  newId,
  RunForecast,
  type RunRecord,
  startedRollouts,
  UsageError,
} from '@swefarm/shared';
import { findPrice, NO_PRICE, withPrice } from '@swefarm/trajectories';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { type Caller, findCaller, operatorSettings } from '../access/callers.ts';
import {
  requireInstanceAllowed,
  requireInstanceCount,
  requireRunAllowed,
  requireRunSize,
  requireWithinCeilings,
} from '../access/ceilings.ts';
import type { RouteDeps } from '../access/deps.ts';
import { keyFor, storeKey } from '../access/policykeys.ts';
import { namingFields, Refusal } from '../access/refusal.ts';
import { readInstances, wholeDataset } from '../calls/runrows.ts';

export const RunSubmission = z.strictObject({
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
  lease_seconds: z
    .number()
    .positive()
    .max(7 * 86_400)
    .optional()
    .meta({
      description: 'cancel the run after this time without POST /v1/runs/heartbeat; absent: never',
    }),
});

export const SubmittedRun = z.object({
  run_id: z.string(),
  instance_ids: z
    .array(z.string())
    .meta({ description: 'instance ids of the rows, in order; with `until`: all that the run may draw' }),
  rollouts: z.number().int(),
  queued: z.number().int().meta({ description: 'rollouts that this request queued' }),
  cancelled: CancelReason.nullable().meta({
    description: 'why the run with this key was cancelled; null: the run was not cancelled as a whole',
  }),
});
export const Planned = z.object({ forecast: RunForecast });

export const SubmissionQuery = z.object({
  plan: z
    .enum(['true', 'false'])
    .default('false')
    .meta({ description: 'true: queue nothing, and answer with the forecast of the run' }),
});

type SubmissionRequest = FastifyRequest & {
  body: z.infer<typeof RunSubmission>;
  query: z.infer<typeof SubmissionQuery>;
};

/** Returns the submitted run, or the forecast that a plan asks for. Throws Refusal. */
export async function submitRun(deps: RouteDeps, request: SubmissionRequest) {
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
  const operator = operatorSettings(deps.settings, caller);
  requireRunAllowed(request, { caller, operator, run, config });
  const dataset = { path: `rows of ${caller.name}`, sha256: chosenSha256(instances), instances };
  const settings = merge(operator, { ...run, group_size: request.body.group_size });
  const keyless = namingFields(() => recordFromSettings(settings, runId, dataset, null));
  namingFields(() => withShownPictures(keyless, instances));
  requireWithinCeilings(keyless, config, 'run.');
  requireRunSize(keyless, config);
  const described = priced(deps, keyless);
  const stored = await farm.runs.get(runId);
  const isPlan = request.query.plan === 'true';
  const known = isPlan || !stored ? await farm.history.read(described.agent, instances) : undefined;
  const forecast = known && (await forecastRun(farm, described, instances, known));
  if (isPlan) return { forecast: namingFields(() => requireForecast(forecast)) };
  // The key is stored after the checks of the request, so that a bad request leaves no key in Redis.
  const record = await withKey(deps, { ...described, forecast }, caller, operator, run);
  if (stored) requireSame(stored, record);
  const warnings = stored ? [] : weightWarnings(record.reward.weights);
  for (const warning of warnings) deps.log.warn({ caller: caller.name, run: runId }, warning);
  const rollouts = startedRollouts(record);
  const submitted = await quota.admit(caller, stored ? 0 : rollouts, async () => ({
    value: await submit(farm, { record: stored ?? record, instances, known }, signal),
    booked: { run_id: runId, rollouts },
  }));
  const { lease_seconds: lease } = request.body;
  if (lease !== undefined) await farm.runLeases.renew([runId], lease * 1000);
  return {
    isNew: stored === null,
    run_id: runId,
    instance_ids: instances.map((one) => one.instance_id),
    rollouts: submitted.rollouts.length,
    queued: submitted.queued,
    cancelled: stored && (await farm.cancel.runCancelled(runId)),
  };
}

/** Returns the run id of a caller's idempotency key. */
const runIdFrom = (caller: string, key: string): string => idOf('k', `${caller}\n${key}`);

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

function requireSame(stored: RunRecord, submitted: RunRecord): void {
  try {
    requireSameSettings(stored, submitted);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new Refusal(409, 'run_differs', error.message, { field: 'idempotency-key', cause: error });
  }
}
