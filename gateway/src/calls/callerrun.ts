/** Reads the settings of a run, and the instance, from a caller's entry and the row of the request. */

import { describeProblems } from '@swefarm/datasets';
import { asTree, merge } from '@swefarm/runs';
import { asksPolicy, type Instance } from '@swefarm/shared';
import { type GymRow, instanceIdOf, instanceOf, policyOf } from '@swefarm/trajectories';
import { type Caller, operatorSettings } from '../access/callers.ts';
import type { GatewayDeps } from '../access/deps.ts';
import { keyFor, keyOrigins } from '../access/policykeys.ts';
import { Refusal } from '../access/refusal.ts';
import { type FailureMode, isTraining } from './failuremode.ts';
import type { CallerRun } from './openruns.ts';

/**
 * Merges the settings of `serve`, of the caller and of the row. Later settings win, except that the row can only lower
 * `max_sequence_tokens`, and replaces a configured model only by `policy_model_name` or `policy.model`. The other fields of `policy` are not
 * settings of the run, because rows with different addresses, headers or cache salts share a run.
 */
export function readCallerRun(caller: Caller, mode: FailureMode, row: GymRow, deps: GatewayDeps): CallerRun {
  const base = operatorSettings(deps.settings, caller);
  const { urls, apiKey, model: named, requestModel, version, sampling, own } = policyOf(row);
  const policy = asTree(base.policy);
  const model = named ?? (policy.model === undefined ? requestModel : null);
  const maxTokens = lowest(asTree(base.agent).max_sequence_tokens, row.max_sequence_tokens);
  const settings = merge(
    { kind: isTraining(mode) ? 'training' : 'collection', policy: { require_tokens: isTraining(mode) } },
    merge(base, {
      ...(maxTokens === null ? {} : { agent: { max_sequence_tokens: maxTokens } }),
      ...(row.reward_weights == null ? {} : { reward: { weights: row.reward_weights } }),
      policy: {
        ...(urls === null ? {} : { urls: [...urls] }),
        ...(version === null ? {} : { version }),
        ...(model === null ? {} : { model }),
        sampling: { ...asTree(policy.sampling), ...sampling },
      },
    }),
  );
  if (!asksPolicy(asTree(settings.agent).type)) delete settings.policy;
  // Origins that may receive a key in the row: the row's endpoints (if none, the operator's) and the caller's `apiKeyOrigins`.
  const keyAt = (requested: readonly string[] | null) =>
    apiKey
      ? { secret: apiKey, origins: keyOrigins(caller, requested ?? policy.urls) }
      : keyFor(caller, policy.urls, requested);
  return {
    ...{ caller, settings, apiKey: keyAt(urls) },
    own: own && settings.policy ? { ...own, apiKey: own.urls && keyAt(own.urls) } : null,
  };
}

/** Returns the limit of the row, but at most the operator's limit; null if the row has no limit. */
function lowest(allowed: unknown, requested: number | null | undefined): number | null {
  if (requested == null) return null;
  return typeof allowed === 'number' ? Math.min(allowed, requested) : requested;
}

/** Returns the instance in the row, or the instance in the dataset of `serve` that the row names by id. Throws Refusal 404, 422. */
export function requestedInstance(row: GymRow, deps: GatewayDeps): Instance {
  const read = instanceOf(row, deps.rows);
  if ('instance' in read) return withHealth(read.instance, deps);
  if ('id' in read) {
    const known = deps.instances?.get(read.id);
    if (known) return withHealth(known, deps);
    throw new Refusal(
      404,
      'unknown_instance',
      `instance_id: unknown instance ${read.id}; send the whole row, or start serve with its --dataset`,
      { field: 'instance_id' },
    );
  }
  const [first] = read.problems;
  const field = first?.field ?? 'instance_id';
  const message = describeProblems(instanceIdOf(row) ?? 'row', read.problems, 'no rollout');
  throw new Refusal(422, 'bad_row', message, { field });
}

/** Returns the instance with the findings of `swefarm health`. */
export function withHealth(instance: Instance, deps: GatewayDeps): Instance {
  const health = deps.health?.get(instance.instance_id);
  return health ? { ...instance, health: [...health] } : instance;
}
