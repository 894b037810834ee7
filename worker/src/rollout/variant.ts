/** Chooses the prompt set and the toolset of a rollout among those of its run. */
import { createHash } from 'node:crypto';
import {
  type AgentConfig,
  type Instance,
  parseRolloutId,
  RolloutFailure,
  type RunRecord,
  uniformOf,
  type Variant,
} from '@swefarm/shared';

type Weighted = { name: string; weight: number };
type BranchOf = { branch_of?: { rollout_id: string } | null | undefined };

/**
 * Returns the settings of the agent with at most one prompt set and one toolset. A row's names win, then the toolset of the prompt set. The
 * others are drawn by weight from a hash of run and instance, so that all rollouts and attempts of a group have the same. `variant` is null
 * if the run has no sets. Throws RolloutFailure `instance_invalid` for a name that the run lacks.
 */
export function variantOf(
  { agent, run_id, branch_of: branch }: Pick<RunRecord, 'agent' | 'run_id'> & BranchOf,
  instance: Pick<Instance, 'instance_id' | 'prompts' | 'toolset'>,
): { config: AgentConfig; variant: Variant | null } {
  const sets = typeof agent.prompts === 'string' ? [] : agent.prompts;
  if (sets.length === 0 && agent.toolset.length === 0) return { config: agent, variant: null };
  // Rows that name no set have the default one, if the run has only sets that other rows name.
  const name = typeof agent.prompts === 'string' ? agent.prompts : 'default';
  // A branch continues a rollout of another run, with its first messages.
  const drawnIn = branch ? parseRolloutId(branch.rollout_id).runId : run_id;
  const choose = <T extends Weighted>(
    among: readonly T[],
    named: string | undefined,
    kind: string,
  ): T | null => {
    if (named === undefined) return drawn(among, [drawnIn, instance.instance_id, kind]);
    const found = among.find((one) => one.name === named);
    if (found) return found;
    const known = among.map((one) => one.name).join(', ') || 'none';
    const why = `${kind} "${named}" of the row is not in the run, which has ${known}`;
    throw new RolloutFailure('instance_invalid', why);
  };
  const set = choose(sets, sets.length > 0 ? instance.prompts : undefined, 'prompt set');
  const toolset = choose(agent.toolset, instance.toolset ?? set?.toolset, 'toolset');
  return {
    config: { ...agent, prompts: set ? [set] : name, toolset: toolset ? [toolset] : [] },
    variant: {
      prompts: set?.name ?? name,
      prompts_hash: set && hashOf(set),
      toolset: toolset?.name ?? 'default',
      toolset_hash: toolset && hashOf(toolset),
    },
  };
}

/** Returns a set with the probability of its weight; null if no set has a weight. */
function drawn<T extends Weighted>(among: readonly T[], seed: readonly string[]): T | null {
  const all = among.reduce((sum, { weight }) => sum + weight, 0);
  let left = uniformOf(JSON.stringify(seed)) * all;
  for (const one of among) {
    left -= one.weight;
    if (left < 0) return one;
  }
  // The sum of the weights may have been rounded up.
  return among.findLast(({ weight }) => weight > 0) ?? null;
}

function hashOf({ name: _name, weight: _weight, ...contents }: Weighted): string {
  return createHash('sha256').update(JSON.stringify(contents)).digest('hex');
}
