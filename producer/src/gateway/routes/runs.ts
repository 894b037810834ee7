/** The farm's own API: submit a run, take its results as they come, cancel, ask, read trajectories. */
import { createHash } from 'node:crypto';
import {
  type ArtifactContent,
  decodeArtifact,
  type Instance,
  newId,
  parseRolloutId,
  type RunRecord,
  startedRollouts,
  UsageError,
} from '@swefarm/shared';
import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { describeProblems } from '../../datasets/problem.ts';
import { chosenSha256 } from '../../datasets/read.ts';
import { toInstance } from '../../datasets/row.ts';
import { asTree, checkSettings, merge, recordOf, refuseDifferent } from '../../run/record.ts';
import { submit } from '../../run/submit.ts';
import { plainJson } from '../../view/plain.ts';
import { findCaller } from '../access/callers.ts';
import {
  requireInstanceCount,
  requireKindAllowed,
  requireNetworkAllowed,
  requireRunSize,
  requireWithinCeilings,
} from '../access/ceilings.ts';
import type { GatewayDeps, RouteDeps } from '../access/deps.ts';
import { keyFor, storeKey } from '../access/policykeys.ts';
import { Refusal, settingsRefusal } from '../access/refusal.ts';

const Submit = z.strictObject({
  /** Rows as in a dataset file, or ids of the dataset that `serve` was started with. */
  instances: z
    .array(
      z.union(
        [z.string(), z.looseObject({ instance_id: z.string() })],
        'expected a row with its instance_id, or an id of the dataset of serve',
      ),
    )
    .min(1),
  group_size: z.number().int().positive().default(1),
  /** Keys of a run's record, as in a --run-config file. */
  run: z.record(z.string(), z.unknown()).default({}),
});
const RunParams = z.object({ run: z.string().regex(/^[a-z0-9]+$/, 'expected a run id') });
const RolloutParams = z.object({ rollout: z.string() });
const ResultsQuery = z.object({
  /** `last_id` of the answer before; 0: from the start. */
  after: z
    .string()
    .regex(/^\d+(-\d+)?$/, 'expected the last_id of an earlier answer')
    .default('0'),
  wait_seconds: z.coerce.number().min(0).max(3600).default(0),
  count: z.coerce.number().int().min(1).max(1000).default(200),
});
const Cancel = z.strictObject({ rollouts: z.array(z.string()).min(1).optional() }).nullish();

export function runRoutes(app: FastifyInstance, deps: RouteDeps): void {
  const { farm, config, signal, quota } = deps;
  const typed = app.withTypeProvider<ZodTypeProvider>();

  typed.post('/v1/runs', { schema: { body: Submit } }, async (request, reply) => {
    const caller = findCaller(request);
    const { instances: given, group_size, run } = request.body;
    described(() => checkSettings('run', run));
    requireInstanceCount(given.length, config);
    const instances = given.map((one, index) => instanceAt(index, one, deps));
    for (const [index, one] of instances.entries())
      requireNetworkAllowed(one, config, `instances.${index}.needs_egress`);
    const again = request.headers['idempotency-key'];
    // The same key is the same run, whoever was cut off in between.
    const runId = typeof again === 'string' && again !== '' ? idFrom(caller.name, again) : newId();
    const operator = merge(merge({}, deps.settings ?? {}), caller.run);
    requireKindAllowed(request, caller, operator, run);
    const key = keyFor(caller, asTree(operator.policy).urls, asTree(run.policy).urls);
    const settings = merge(operator, { ...run, group_size });
    const dataset = { path: `rows of ${caller.name}`, sha256: chosenSha256(instances), instances };
    const keyless = described(() => recordOf(settings, runId, dataset, null));
    requireWithinCeilings(keyless, config, 'run.');
    requireRunSize(keyless, config);
    // Only once nothing is wrong with the run: what is refused leaves nothing.
    const keyRef = await storeKey(farm, key, config.policy_api_key_ttl_seconds);
    const wanted = withKey(keyless, keyRef);
    const stored = await farm.runs.get(runId);
    if (stored) refuseOther(stored, wanted);
    const rollouts = startedRollouts(wanted);
    const submitted = await quota.admit(caller, stored ? 0 : rollouts, async () => ({
      value: await submit(farm, { record: stored ?? wanted, instances }, signal),
      booked: { run_id: runId, rollouts },
    }));
    return reply.code(stored ? 200 : 201).send({
      run_id: runId,
      rollouts: submitted.rollouts.length,
      queued: submitted.queued,
    });
  });

  typed.get('/v1/runs', async () => {
    const [runs, unreadable] = await Promise.all([farm.runs.list(), farm.runs.unreadable()]);
    return { runs: runs.map(shownRun), unreadable };
  });

  typed.get('/v1/runs/:run', { schema: { params: RunParams } }, async (request) => {
    const run = await knownRun(request.params.run);
    const [counts, groups] = await Promise.all([
      farm.results.counts(run.run_id),
      farm.results.groups(run.run_id),
    ]);
    const left = [...groups.values()].reduce((sum, group) => sum + Math.max(0, group.left), 0);
    return { ...shownRun(run), left, counts, groups: Object.fromEntries(groups) };
  });

  typed.get(
    '/v1/runs/:run/results',
    { schema: { params: RunParams, querystring: ResultsQuery } },
    async (request, reply) => {
      const { after, wait_seconds, count } = request.query;
      const run = await knownRun(request.params.run);
      const gone = new AbortController();
      reply.raw.once('close', () => gone.abort());
      const until = AbortSignal.any([gone.signal, signal]);
      try {
        const batch = await farm.results.read(run.run_id, after, {
          count,
          blockMs: wait_seconds * 1000,
          signal: until,
        });
        const { results, unreadable, last_id } = batch;
        return { results: results.map(({ result }) => result), unreadable, last_id };
      } catch (error) {
        if (gone.signal.aborted) return reply.hijack();
        if (signal.aborted) return { results: [], unreadable: [], last_id: after };
        throw error;
      }
    },
  );

  typed.post('/v1/runs/:run/cancel', { schema: { params: RunParams, body: Cancel } }, async (request) => {
    const run = await knownRun(request.params.run);
    const rollouts = request.body?.rollouts;
    const foreign = rollouts?.find((id) => parseRolloutId(id).runId !== run.run_id);
    if (foreign !== undefined) {
      throw new Refusal(400, 'bad_request', `rollouts: ${foreign} is not of run ${run.run_id}`, {
        field: 'rollouts',
      });
    }
    if (rollouts) await farm.cancel.cancelRollouts(rollouts);
    else await farm.cancel.cancelRun(run.run_id);
    return { cancelled: rollouts ?? run.run_id };
  });

  typed.get('/v1/rollouts/:rollout', { schema: { params: RolloutParams } }, async (request) => {
    const { rollout } = request.params;
    const result = await farm.results.get(rollout);
    if (result) return { status: 'done', result };
    await knownRun(parseRolloutId(rollout).runId);
    const attempts = await farm.journal.read(rollout);
    return { status: attempts.length === 0 ? 'waiting' : 'running', attempts };
  });

  typed.get('/v1/rollouts/:rollout/trajectory', { schema: { params: RolloutParams } }, async (request) => {
    const { trajectory } = await artifactOf(request.params.rollout);
    return plain(trajectory);
  });

  typed.get('/v1/rollouts/:rollout/artifact', { schema: { params: RolloutParams } }, async (request) =>
    plain(await artifactOf(request.params.rollout)),
  );

  async function knownRun(runId: string): Promise<RunRecord> {
    const run = await farm.runs.get(runId);
    if (run) return run;
    throw new Refusal(404, 'unknown_run', `run: there is no run ${runId} at ${farm.address}`, {
      field: 'run',
    });
  }

  async function artifactOf(rollout: string): Promise<ArtifactContent> {
    const result = await farm.results.get(rollout);
    if (result?.artifact) return await decodeArtifact(await farm.artifacts.get(result.artifact));
    const why = result ? 'nothing was kept of it' : 'it has no result yet';
    throw new Refusal(404, 'no_artifact', `rollout: ${rollout}: ${why}`, { field: 'rollout' });
  }
}

const plain = (value: unknown): unknown => JSON.parse(plainJson(value));

const shownRun = (run: RunRecord) => ({
  run_id: run.run_id,
  created_at: run.created_at,
  kind: run.kind,
  open: run.open,
  group_size: run.group_size,
  dataset: run.dataset,
});

const withKey = (run: RunRecord, api_key_ref: string | null): RunRecord =>
  run.policy ? { ...run, policy: { ...run.policy, api_key_ref } } : run;

/** A run id from what the caller chose: a letter first, as all of ours. */
const idFrom = (caller: string, key: string): string =>
  `k${BigInt(`0x${createHash('sha256').update(`${caller}\n${key}`).digest('hex')}`)
    .toString(36)
    .slice(0, 20)}`;

const IN_RUN = { url: 'run.policy.urls', model: 'run.policy.model' };

function described<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw settingsRefusal(error, 'run.', IN_RUN);
  }
}

function refuseOther(stored: RunRecord, wanted: RunRecord): void {
  try {
    refuseDifferent(stored, wanted);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new Refusal(409, 'run_differs', error.message, { field: 'idempotency-key', cause: error });
  }
}

function instanceAt(
  index: number,
  given: z.infer<typeof Submit>['instances'][number],
  { instances, health }: GatewayDeps,
): Instance {
  const field = `instances.${index}`;
  const read = typeof given === 'string' ? null : toInstance(field, given);
  if (read && 'problems' in read) {
    const name = read.problems[0]?.field;
    throw new Refusal(422, 'bad_row', describeProblems(field, read.problems, 'nothing was submitted'), {
      field: name ? `${field}.${name}` : field,
    });
  }
  const instance = read?.instance ?? (typeof given === 'string' ? instances?.get(given) : undefined);
  if (!instance) {
    throw new Refusal(404, 'unknown_instance', `${field}: ${String(given)} is not in the dataset of serve`, {
      field,
    });
  }
  const known = health?.get(instance.instance_id);
  return known ? { ...instance, health: [...known] } : instance;
}
