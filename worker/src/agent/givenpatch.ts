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

/** Returns the patch of an agent without turns. Throws RolloutFailure `instance_invalid` when row or job has no patch for the agent. */
export function givenPatch(name: AgentName, instance: Instance, patch: string | null): string {
  if (isSandboxAgent(name))
    throw new RolloutFailure('bug', `agent ${name} makes its own patch; none is given`);
  return GIVEN[name](instance, patch);
}
