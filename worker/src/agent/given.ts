/** Agents without turns: what `golden`, `noop` and `patch` put before the evaluation. */
import { type AgentConfig, type Instance, RolloutFailure } from '@swefarm/shared';

/**
 * The patch of an agent that takes no turn: the row's gold, nothing, or the one that came with the job.
 * An empty text is a legitimate patch (`noop`): whether it is evaluated is the reward table's business.
 *
 * @throws RolloutFailure `instance_invalid` when the row withholds its gold or the job brought no patch
 */
export function givenPatch(type: AgentConfig['type'], instance: Instance, patch: string | null): string {
  switch (type) {
    case 'golden':
      if (instance.patch.trim() === '') {
        throw new RolloutFailure(
          'instance_invalid',
          `${instance.instance_id}: the row withholds its gold patch`,
        );
      }
      return instance.patch;
    case 'noop':
      return '';
    case 'patch':
      if (patch === null) {
        throw new RolloutFailure('instance_invalid', `${instance.instance_id}: no patch came with the job`);
      }
      return patch;
    case 'mini':
    case 'external':
      throw new RolloutFailure('bug', `agent ${type} makes its patch in turns: nothing is given`);
  }
}
