/** What a caller may ask of this gateway: settings of a run below its ceilings, calls of bounded size, a class that is theirs. */
import {
  beyondCeiling,
  describeExcess,
  type Excess,
  type Instance,
  type ProducerConfig,
  type RunRecord,
  startedGroup,
} from '@swefarm/shared';
import type { FastifyRequest } from 'fastify';
import type { SettingsTree } from '../../run/record.ts';
import { type Caller, hasOneToken } from './callers.ts';
import { Refusal } from './refusal.ts';

const HERE = 'this gateway';

/** Throws Refusal 422 `over_ceiling`. `prefix`: where in the request's body the settings stand. */
export function holdToCeilings(
  run: Pick<RunRecord, 'agent' | 'sandbox' | 'evaluation' | 'ttl'>,
  config: ProducerConfig,
  prefix: string,
): void {
  const excess = beyondCeiling(run, config);
  if (excess) throw over({ ...excess, field: `${prefix}${excess.field}` });
}

/** The same for an instance, which may ask for a network for its tests. `field`: where it stands. */
export function holdInstance({ needs_egress }: Instance, config: ProducerConfig, field: string): void {
  if (!needs_egress || config.max_network === 'egress') return;
  throw over({ field, value: 'egress', ceiling: 'none', setting: 'max_network' });
}

/** The number of instances of one submit, before any is read. */
export const holdCount = (instances: number, config: ProducerConfig): void =>
  hold('instances', instances, 'gateway_max_instances', config);

/** The size of one submitted run, with what may be refilled. */
export function holdSize(run: RunRecord, config: ProducerConfig): void {
  const group = startedGroup(run) + run.refills;
  hold('group_size', group, 'gateway_max_group_size', config);
  hold('group_size', group * run.dataset.instances, 'gateway_max_rollouts', config);
}

type Size = 'gateway_max_instances' | 'gateway_max_group_size' | 'gateway_max_rollouts';

function hold(field: string, value: number, setting: Size, config: ProducerConfig): void {
  if (value > config[setting]) throw over({ field, value, ceiling: config[setting], setting });
}

/**
 * The class of priority that a caller asks for in a request. Validation overtakes all training: it is for whom the operator lets
 * (`kinds` of an entry, or its own `kind`), and for everybody where the gateway has one token.
 */
export function holdKind(
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

function over(excess: Excess): Refusal {
  return new Refusal(422, 'over_ceiling', describeExcess(excess, HERE), { field: excess.field });
}
