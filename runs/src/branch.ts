/** Makes a run whose rollouts continue a stored rollout behind one of its turns. */
import {
  BRANCHES,
  type Instance,
  newId,
  type RunRecord,
  recordedTurns,
  type Trajectory,
  textOfTurns,
  UsageError,
} from '@swefarm/shared';
import type { Submission } from './submit.ts';

/** `turn`: the last turn that the branches share, counted from 1. */
export type Branching = { rolloutId: string; turn: number; branches: number };

/**
 * Returns the run to submit: `branches` rollouts with the settings of the stored rollout's run.
 *
 * @throws UsageError if the agent has no turns that can be replayed, or there is no turn to continue
 */
export function branchRun(
  run: RunRecord,
  instance: Instance,
  trajectory: Trajectory,
  { rolloutId, turn, branches }: Branching,
): Submission {
  if (run.agent.type !== 'mini')
    throw new UsageError(
      `${rolloutId}: only rollouts of the agent mini have branches; this one's is ${run.agent.type}`,
    );
  const { length } = trajectory.turns;
  // The last turn ended the rollout.
  if (turn < 1 || turn >= length)
    throw new UsageError(
      `--at ${turn}: ${rolloutId} has ${length} turns, and the last one ended it: give a number from 1 to ${length - 1}`,
    );
  const { forecast: _, ...settings } = run;
  const record: RunRecord = {
    ...settings,
    needs: Math.max(run.needs, BRANCHES),
    run_id: newId(),
    created_at: new Date().toISOString(),
    dataset: { ...run.dataset, instances: 1 },
    group_size: branches,
    ...{ oversample: 0, refills: 0, min_group: null, deadline_at: null, open: false, until: null },
    branch_of: { rollout_id: rolloutId, turn },
  };
  const text = textOfTurns(recordedTurns(trajectory, turn), { replay: null }).toString('utf8');
  return { record, instances: [instance], patches: new Map([[instance.instance_id, [text]]]) };
}
