/** From a caller and its row to the settings of the run that the rollout belongs to, and to the instance. */

import { describeProblems } from '@swefarm/datasets';
import { asTree, merge } from '@swefarm/runs';
import { asksPolicy, type Instance } from '@swefarm/shared';
import { type GymRow, instanceIdOf, instanceOf, policyOf } from '@swefarm/trajectories';
import type { Caller } from '../access/callers.ts';
import type { GatewayDeps } from '../access/deps.ts';
import { keyFor, keyOrigins } from '../access/policykeys.ts';
import { Refusal } from '../access/refusal.ts';
import { type FailureMode, isTraining } from './failuremode.ts';
import type { CallerRun } from './openruns.ts';

/** The settings of `serve`, then of the caller, then of the row: the later ones win. */
export function readCallerRun(caller: Caller, mode: FailureMode, row: GymRow, deps: GatewayDeps): CallerRun {
  const base = merge(merge({}, deps.settings ?? {}), caller.run);
  const { urls, apiKey, model, version, sampling } = policyOf(row);
  const policy = asTree(base.policy);
  const maxTokens = lower(asTree(base.agent).max_sequence_tokens, row.max_sequence_tokens);
  const settings = merge(
    { kind: isTraining(mode) ? 'training' : 'collection', policy: { require_tokens: isTraining(mode) } },
    merge(base, {
      ...(maxTokens === null ? {} : { agent: { max_sequence_tokens: maxTokens } }),
      policy: {
        ...(urls === null ? {} : { urls: [...urls] }),
        ...(version === null ? {} : { version }),
        ...(model === null || (policy.model !== undefined && !row.policy_model_name) ? {} : { model }),
        sampling: { ...asTree(policy.sampling), ...sampling },
      },
    }),
  );
  // Agents that ask no policy have none in their record.
  if (!asksPolicy(asTree(settings.agent).type)) delete settings.policy;
  // The key of a row is for the row's own endpoints, or for the operator's where it names none.
  const own = apiKey && { secret: apiKey, origins: keyOrigins(caller, urls ?? policy.urls) };
  return { caller, settings, apiKey: own ?? keyFor(caller, policy.urls, urls) };
}

/** The smaller of what the operator allows and what the row asks for; null: the row asks for nothing. */
function lower(allowed: unknown, asked: number | null | undefined): number | null {
  if (asked == null) return null;
  return typeof allowed === 'number' ? Math.min(allowed, asked) : asked;
}

/** The instance of a row, from the row itself or from the dataset of `serve`. Throws Refusal for an unknown or incomplete one. */
export function requestedInstance(row: GymRow, deps: GatewayDeps): Instance {
  const read = instanceOf(row, deps.rows);
  if ('instance' in read) return withHealth(read.instance, deps);
  if ('id' in read) {
    const known = deps.instances?.get(read.id);
    if (known) return withHealth(known, deps);
    throw new Refusal(
      404,
      'unknown_instance',
      `instance_id: ${read.id} is not known here; send the whole row, or start serve with its --dataset`,
      { field: 'instance_id' },
    );
  }
  const [first] = read.problems;
  const field = first?.field ?? 'instance_id';
  throw new Refusal(
    422,
    'bad_row',
    describeProblems(instanceIdOf(row) ?? 'row', read.problems, 'no rollout'),
    {
      field,
    },
  );
}

/** The instance with what `swefarm health` found of it. */
export function withHealth(instance: Instance, deps: GatewayDeps): Instance {
  const health = deps.health?.get(instance.instance_id);
  return health ? { ...instance, health: [...health] } : instance;
}
