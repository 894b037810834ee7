/** Agents without turns: each provides the patch to evaluate. */
import {
  type AgentName,
  type GivenAgent,
  type Instance,
  isSandboxAgent,
  RolloutFailure,
} from '@swefarm/shared';

type GivePatch = (instance: Instance, patch: string | null) => string;

const GIVEN: Record<GivenAgent, GivePatch> = {
  golden({ instance_id, patch }) {
    if (patch.trim() === '')
      throw new RolloutFailure('instance_invalid', `${instance_id}: the row withholds its gold patch`);
    return patch;
  },
  noop: () => '',
  patch({ instance_id }, patch) {
    if (patch === null)
      throw new RolloutFailure('instance_invalid', `${instance_id}: no patch came with the job`);
    return patch;
  },
};

/** @throws RolloutFailure `instance_invalid` when the row withholds its gold patch, or the job brought none */
export function givenPatch(name: AgentName, instance: Instance, patch: string | null): string {
  if (isSandboxAgent(name))
    throw new RolloutFailure('bug', `agent ${name} makes its own patch; none is given`);
  return GIVEN[name](instance, patch);
}
