/** `swefarm branch`: queues rollouts that continue a stored rollout behind one of its turns. */
import { branchRun, submit } from '@swefarm/runs';
import { openFarm, parseRolloutId, UsageError } from '@swefarm/shared';
import { command, defaulted, required, whole } from './declare.ts';
import { EXIT } from './exit.ts';
import { FARM, type FarmValues, producerConfig } from './options.ts';
import { findRollout } from './show.ts';
import { listenForStop } from './stop.ts';
import { print } from './terminal.ts';

export const branch = command({
  arguments: { '<rollout>': 'a rollout id, or FILE#ID of an output (ID may be INSTANCE.INDEX)' },
  options: {
    '--at <turn>': required(whole('the last turn that the branches share, counted from 1')),
    '--branches <n>': defaulted(whole('number of rollouts that continue behind it (default: 1)'), 1),
    ...FARM,
  },
  example: 'swefarm branch results.jsonl#INSTANCE.0 --at 10 --branches 8',
  async run(o, { rollout: name }) {
    const { run, instance, trajectory, rolloutId } = await findBranchable(name, o);
    const branching = { rolloutId, turn: o.at, branches: o.branches };
    const submission = branchRun(run, instance, trajectory, branching);
    await using farm = await openFarm(producerConfig(o), 'producer');
    const submitted = await submit(farm, submission, listenForStop().draining);
    await print(JSON.stringify({ ...submitted, branch_of: submission.record.branch_of }));
    return EXIT.allJudged;
  },
});

/** Returns a stored rollout with the settings and the row of its run. Throws UsageError if one of them is missing. */
export async function findBranchable(name: string, o: FarmValues) {
  const { facts, content } = await findRollout(name, o);
  const { rollout_id: rolloutId } = facts;
  const trajectory = content?.trajectory;
  if (!trajectory)
    throw new UsageError(`${rolloutId}: has no stored trajectory, so there are no turns to replay`);
  await using farm = await openFarm(producerConfig(o), 'producer');
  const { runId, instanceId } = parseRolloutId(rolloutId);
  const [run, instance] = await Promise.all([farm.runs.get(runId), farm.runs.getInstance(runId, instanceId)]);
  if (!run || !instance)
    throw new UsageError(
      `${rolloutId}: ${farm.address} has no run ${runId} any more (--ttl), whose settings and row are needed`,
    );
  return { farm: farm.id, run, instance, trajectory, rolloutId };
}
