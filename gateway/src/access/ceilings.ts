/** Limits of a caller's requests: settings, sizes of runs, kinds of runs. Functions throw Refusal 422 `over_ceiling` unless noted. */

import { asTree, type SettingsTree } from '@swefarm/runs';
import {
  beyondCeiling,
  describeExcess,
  type Excess,
  type Instance,
  instanceBeyondCeiling,
  mostGroups,
  type ProducerConfig,
  type RunRecord,
  startedGroup,
} from '@swefarm/shared';
import type { FastifyRequest } from 'fastify';
import { type Caller, hasOneToken } from './callers.ts';
import { Refusal } from './refusal.ts';

/** @param prefix path of the settings in the request's body */
export function requireWithinCeilings(
  run: Pick<RunRecord, 'agent' | 'sandbox' | 'evaluation' | 'ttl'>,
  config: ProducerConfig,
  prefix: string,
): void {
  const excess = beyondCeiling(run, config);
  if (excess) throw over({ ...excess, field: `${prefix}${excess.field}` });
}

/** @param prefix path of the instance in the request's body */
export function requireInstanceAllowed(instance: Instance, config: ProducerConfig, prefix: string): void {
  if (instance.needs_egress && config.max_network !== 'egress') {
    throw over({ field: `${prefix}needs_egress`, value: 'egress', ceiling: 'none', setting: 'max_network' });
  }
  const excess = instanceBeyondCeiling(instance, config);
  if (excess) throw over({ ...excess, field: `${prefix}${excess.field}` });
}

export const requireInstanceCount = (instances: number, config: ProducerConfig): void =>
  requireAtMost('instances', instances, 'gateway_max_instances', config);

export function requireRunSize(run: RunRecord, config: ProducerConfig): void {
  const group = startedGroup(run) + run.refills;
  requireAtMost('group_size', group, 'gateway_max_group_size', config);
  requireAtMost('group_size', group * mostGroups(run, run.dataset.instances), 'gateway_max_rollouts', config);
}

type Size = 'gateway_max_instances' | 'gateway_max_group_size' | 'gateway_max_rollouts';

function requireAtMost(field: string, value: number, setting: Size, config: ProducerConfig): void {
  if (value > config[setting]) throw over({ field, value, ceiling: config[setting], setting });
}

type RequestedRun = {
  caller: Caller;
  /** Settings of `serve` and of the caller. */
  operator: SettingsTree;
  /** Settings in the field `run` of the request. */
  run: SettingsTree;
  config: CardConfig;
};

/** Throws Refusal 403 or 422 for settings that only the operator may choose. */
export function requireRunAllowed(
  request: FastifyRequest,
  { caller, operator, run, config }: RequestedRun,
): void {
  requireKindAllowed(request, caller, operator, run);
  requirePromptsAllowed(operator, run);
  requireCardAllowed(run, config);
}

/**
 * Refuses validation, which has priority over training, unless `kinds` or the operator's settings contain `validation`, or the caller has
 * no `kinds` and the gateway has one token.
 *
 * @throws Refusal 403 `kind_forbidden`
 */
function requireKindAllowed(
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
    `run.kind: caller ${caller.name} may not submit validation, which has priority over training; the operator allows it by kinds: [validation] in its entry of gateway_callers`,
    { field: 'run.kind' },
  );
}

/**
 * Refuses files of sets and folders of prompts that the operator did not set, because the gateway and the workers read them from their own
 * disks.
 *
 * @throws Refusal 422 `bad_settings`
 */
function requirePromptsAllowed(operator: SettingsTree, run: SettingsTree): void {
  const own = asTree(operator.agent);
  const given = asTree(run.agent);
  const refuse = (key: string, why: string): never => {
    const field = `run.agent.${key}`;
    throw new Refusal(422, 'bad_settings', `${field}: ${why}`, { field });
  };
  for (const key of ['prompts', 'toolset'] as const) {
    const sets = given[key] === own[key] ? [] : [given[key]].flat();
    if (sets.some((set) => typeof set === 'string' && /[/\\]|\.(ya?ml|json)\b/.test(set)))
      refuse(
        key,
        'a request may name a set that comes with swefarm, or send the set itself; the operator sets a file, or a folder of the workers, with serve or in an entry of gateway_callers (run: {agent: {prompts: FOLDER}})',
      );
    // A template of this engine has loops and filters, which run in the worker's own process.
    if (sets.some((set) => asTree(set).engine === 'jinja'))
      refuse(key, 'a request may send templates of the engine plain only');
  }
}

/**
 * Refuses a card that the operator did not set, because its program and environment come from the caller. The path of a card is never
 * accepted, because the gateway would read it from its own disk.
 *
 * @throws Refusal 403 `card_forbidden`
 */
function requireCardAllowed(run: SettingsTree, { gateway_agent_cards: allowed }: CardConfig): void {
  const { card } = asTree(run.agent);
  if (card === undefined || card === null || (allowed && typeof card !== 'string')) return;
  throw new Refusal(
    403,
    'card_forbidden',
    allowed
      ? 'run.agent.card: expected the card itself, not the path of a file'
      : 'run.agent.card: a request may name an agent that comes with swefarm (run.agent.type); the operator allows other cards by gateway_agent_cards',
    { field: 'run.agent.card' },
  );
}

type CardConfig = Pick<ProducerConfig, 'gateway_agent_cards'>;

function over(excess: Excess): Refusal {
  return new Refusal(422, 'over_ceiling', describeExcess(excess, 'this gateway'), { field: excess.field });
}
