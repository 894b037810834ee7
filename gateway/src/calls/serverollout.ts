/**
 * Serves `POST /v1/rollouts`: one rollout for a trainer that requests each sample separately. The caller repeats the request with the same
 * `request_id` until the reply contains the sample, so no connection is idle for hours. If the caller stops, the rollout is cancelled.
 */
import { asTree, merge, requireKnownKeys, type SettingsTree } from '@swefarm/runs';
import { type Instance, onAbort, RolloutPolicy } from '@swefarm/shared';
import { SampleBody, type SampleChoice, sampleOf } from '@swefarm/trajectories';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { type Caller, findCaller, operatorSettings } from '../access/callers.ts';
import { requireInstanceAllowed, requireRunAllowed } from '../access/ceilings.ts';
import { digest, fingerprint } from '../access/digest.ts';
import { keyFor } from '../access/policykeys.ts';
import { namingFields, Refusal, runRefusal } from '../access/refusal.ts';
import { CallConnection } from './callconnection.ts';
import type { CallerRun } from './openruns.ts';
import { readInstance } from './runrows.ts';
import type { CallDeps } from './servecall.ts';

export const RolloutRequest = z.strictObject({
  request_id: z.string().min(1).max(200).meta({
    description:
      'requests with the same id, instance and settings get the same rollout until an hour after the answer; a cancelled rollout only until the answer. If policy.urls differ, an unfinished rollout is cancelled and a new one starts',
  }),
  instance: z
    .union([z.string(), z.looseObject({})], 'expected a row, or an id of the dataset of serve')
    .meta({ description: 'a row as in a dataset file, or an id of the dataset that serve was started with' }),
  run: z
    .record(z.string(), z.unknown())
    .default({})
    .meta({ description: "keys of a run's record, as in a --run-config file" }),
  lines: z.enum(['main', 'all']).default('main'),
  routed_experts: z.boolean().default(false),
  wait_seconds: z.number().min(0).max(600).default(30).meta({ description: 'longest wait for the result' }),
});

export const RolloutAnswer = z.union([
  z.object({ status: z.literal('waiting'), rollout_id: z.string() }),
  SampleBody.extend({ status: z.literal('done'), rollout_id: z.string() }),
]);

type Asked = FastifyRequest & { body: z.infer<typeof RolloutRequest> };

export async function serveRollout(
  deps: CallDeps,
  request: Asked,
  reply: FastifyReply,
): Promise<z.infer<typeof RolloutAnswer>> {
  const { config } = deps;
  const { wait_seconds: waitSeconds, lines, routed_experts: experts, ...asked } = request.body;
  const { settings: run } = splitPolicy(asked.run);
  const caller = findCaller(request);
  const instance = readInstance('instance', asked.instance, deps);
  requireInstanceAllowed(instance, config, 'instance.');
  const callerRun = settingsOf(deps, caller, request);
  const identity = {
    fingerprint: fingerprint([caller.name, `rollout ${asked.request_id}`, digest({ ...asked, run })]),
    named: true,
    graceMs: config.gateway_collector_grace_seconds * 1000,
  };
  const limits = { maxHoldSeconds: waitSeconds, timeoutSeconds: null };
  using connection = new CallConnection(reply, deps.calls, identity, limits, deps.signal);
  // Until the reply contains the sample, a repeated request finds the same rollout.
  connection.isUnanswered = true;
  try {
    return await awaitSample(deps, { connection, callerRun, instance, identity, choice: { lines, experts } });
  } catch (error) {
    // The reply of a closed connection has no body.
    if (connection.closed.aborted) return reply.hijack() as never;
    throw error;
  }
}

/**
 * Separates the policy's endpoints, headers and fields from the settings of the run. A trainer sends different endpoints for each sample,
 * and these samples share a run. A resumed trainer sends different endpoints for the same sample.
 */
function splitPolicy(run: SettingsTree) {
  const { urls, headers, extra_body, ...policy } = asTree(run.policy);
  const settings = run.policy === undefined ? run : { ...run, policy };
  return { own: { urls, headers, extra_body }, settings };
}

/** Merges the settings of `serve`, of the caller and of the request. Throws Refusal 403, 422. */
function settingsOf(deps: CallDeps, caller: Caller, request: Asked): CallerRun {
  const { run } = request.body;
  namingFields(() => requireKnownKeys('run', run));
  const operator = operatorSettings(deps.settings, caller);
  requireRunAllowed(request, { caller, operator, run, config: deps.config });
  const { own: changes, settings: shared } = splitPolicy(run);
  const { urls, headers, extra_body } = changes;
  const settings = merge(operator, shared);
  const operatorUrls = asTree(operator.policy).urls;
  const apiKey = keyFor(caller, operatorUrls, null);
  if ((urls ?? headers ?? extra_body) === undefined) return { caller, settings, apiKey, own: null };
  const parsed = RolloutPolicy.omit({ api_key_ref: true }).safeParse(changes);
  if (parsed.success) {
    const own = { ...parsed.data, apiKey: parsed.data.urls && keyFor(caller, operatorUrls, urls) };
    return { caller, settings, apiKey, own };
  }
  const [issue] = parsed.error.issues;
  const field = ['run', 'policy', ...(issue?.path ?? [])].join('.');
  throw new Refusal(422, 'bad_settings', `${field}: ${issue?.message}`, { field });
}

type Waiting = {
  connection: CallConnection;
  callerRun: CallerRun;
  instance: Instance;
  identity: Parameters<CallDeps['calls']['find']>[0];
  choice: SampleChoice;
};

async function awaitSample(
  deps: CallDeps,
  { connection, callerRun, instance, identity, choice }: Waiting,
): Promise<z.infer<typeof RolloutAnswer>> {
  const rollout = await deps.calls
    .find(identity, callerRun, instance, connection.closed)
    .catch((error: unknown) => {
      throw runRefusal(error);
    });
  await connection.assign(rollout);
  const { rolloutId: rollout_id, run } = rollout;
  const late = AbortSignal.timeout(Math.max(1, connection.deadline - Date.now()));
  const signal = AbortSignal.any([connection.closed, late]);
  const waited = async () =>
    await deps.results.wait(run.run_id, rollout_id, signal).catch((error: unknown) => {
      if (late.aborted && !connection.closed.aborted) return null;
      throw error;
    });
  const result = (await deps.farm.results.get(rollout_id)) ?? (await waited());
  if (result === null) return { status: 'waiting', rollout_id };
  const release = await deps.writers.acquire(connection.closed);
  onAbort(connection.closed, release);
  const content = await deps.farm.artifacts.read(result.artifact);
  connection.isUnanswered = false;
  // A trainer whose rollouts were cancelled may restart and use the same ids. It then needs new rollouts.
  connection.forgetsName = result.outcome === 'cancelled';
  return { status: 'done', rollout_id, ...sampleOf(result, content?.trajectory ?? null, choice) };
}
