/** What a caller may ask of this gateway: settings of a run below its ceilings, runs of bounded size, a class of priority that is allowed. */

import { asTree, type SettingsTree } from '@swefarm/runs';
import {
  beyondCeiling,
  describeExcess,
  type Excess,
  type Instance,
  instanceBeyondCeiling,
  type ProducerConfig,
  type RunRecord,
  startedGroup,
} from '@swefarm/shared';
import type { FastifyRequest } from 'fastify';
import { type Caller, hasOneToken } from './callers.ts';
import { Refusal } from './refusal.ts';

const HERE = 'this gateway';

/** `prefix`: where in the request's body the settings stand. Throws Refusal 422 `over_ceiling`, as all of these. */
export function requireWithinCeilings(
  run: Pick<RunRecord, 'agent' | 'sandbox' | 'evaluation' | 'ttl'>,
  config: ProducerConfig,
  prefix: string,
): void {
  const excess = beyondCeiling(run, config);
  if (excess) throw over({ ...excess, field: `${prefix}${excess.field}` });
}

/** An instance may ask for a network for its tests, and for more than its run gives. `prefix`: where in the request's body it stands. */
export function requireInstanceAllowed(instance: Instance, config: ProducerConfig, prefix: string): void {
  if (instance.needs_egress && config.max_network !== 'egress') {
    throw over({ field: `${prefix}needs_egress`, value: 'egress', ceiling: 'none', setting: 'max_network' });
  }
  const excess = instanceBeyondCeiling(instance, config);
  if (excess) throw over({ ...excess, field: `${prefix}${excess.field}` });
}

/** The number of instances of one submit, before any is read. */
export const requireInstanceCount = (instances: number, config: ProducerConfig): void =>
  requireAtMost('instances', instances, 'gateway_max_instances', config);

/** The size of one submitted run, with what may be refilled. */
export function requireRunSize(run: RunRecord, config: ProducerConfig): void {
  const group = startedGroup(run) + run.refills;
  requireAtMost('group_size', group, 'gateway_max_group_size', config);
  requireAtMost('group_size', group * run.dataset.instances, 'gateway_max_rollouts', config);
}

type Size = 'gateway_max_instances' | 'gateway_max_group_size' | 'gateway_max_rollouts';

function requireAtMost(field: string, value: number, setting: Size, config: ProducerConfig): void {
  if (value > config[setting]) throw over({ field, value, ceiling: config[setting], setting });
}

/**
 * The class of priority that a caller asks for. Validation overtakes all training: it is for the callers that the operator allows
 * (`kinds` of an entry, or its own `kind`), and for everybody where the gateway has one token.
 *
 * @throws Refusal 403 `kind_forbidden`
 */
export function requireKindAllowed(
  request: FastifyRequest,
  caller: Caller,
  operator: SettingsTree,
  run: SettingsTree,
): void {
  const { kind } = run;
  if (kind !== 'validation' || operator.kind === kind || caller.kinds?.includes(kind)) return;
  if (caller.kinds === null && hasOneToken(request)) return;
  throw new Refusal(
    403,
    'kind_forbidden',
    `run.kind: caller ${caller.name} may not ask for validation, which overtakes training; the operator allows it by kinds: [validation] in its entry of gateway_callers`,
    { field: 'run.kind' },
  );
}

/**
 * The prompt set that a request names. Workers read a path from their own disk: only the operator chooses one, for all callers or in
 * a caller's entry.
 *
 * @throws Refusal 422 `bad_settings`
 */
export function requirePromptsAllowed(operator: SettingsTree, run: SettingsTree): void {
  const { prompts } = asTree(run.agent);
  if (typeof prompts !== 'string' || !/[/\\]/.test(prompts)) return;
  if (prompts === asTree(operator.agent).prompts) return;
  throw new Refusal(
    422,
    'bad_settings',
    'run.agent.prompts: a request names a set that comes with the workers; a folder of theirs is set by the operator, with serve or in an entry of gateway_callers (run: {agent: {prompts: FOLDER}})',
    { field: 'run.agent.prompts' },
  );
}

function over(excess: Excess): Refusal {
  return new Refusal(422, 'over_ceiling', describeExcess(excess, HERE), { field: excess.field });
}
