/** `swefarm cancel`: cancels runs, groups, rollouts or the runs of a policy version. */
import { type Farm, parseRolloutId, UsageError } from '@swefarm/shared';
import { command, text } from './declare.ts';
import { openFarmPatiently } from './farm.ts';
import { FARM, producerConfig } from './options.ts';
import { printStatus } from './terminal.ts';

export const cancel = command({
  arguments: { '[ids...]': 'run or rollout ids' },
  options: {
    '--group <instance>': text('cancel only the rollouts of this instance in the given runs'),
    '--policy-version <name>': text('cancel every unfinished run of these weights, as stale'),
    ...FARM,
  },
  example: 'swefarm cancel RUN --group INSTANCE',
  async run(o, { ids }) {
    await using farm = await openFarmPatiently(producerConfig(o));
    const cancelled = await cancelAll(farm, ids, o.policyVersion, o.group);
    printStatus(`cancelled ${cancelled.join(', ')}; workers stop within two seconds`);
  },
});

async function cancelAll(
  farm: Farm,
  ids: readonly string[],
  version: string | undefined,
  group: string | undefined,
): Promise<string[]> {
  if (version !== undefined) {
    if (ids.length > 0 || group !== undefined)
      throw new UsageError(
        '--policy-version takes no ids and no --group: it cancels every run of that version',
      );
    return await cancelVersion(farm, version);
  }
  if (ids.length === 0)
    throw new UsageError('give run or rollout ids, or --policy-version; swefarm status lists runs');
  const rollouts = ids.filter((id) => id.includes('.'));
  const runs = ids.filter((id) => !id.includes('.'));
  if (group !== undefined && rollouts.length > 0)
    throw new UsageError(`--group goes with run ids, and ${rollouts[0]} is a rollout`);
  for (const runId of [...runs, ...rollouts.map((id) => parseRolloutId(id).runId)]) {
    if (!(await farm.runs.exists(runId))) throw new UsageError(`run ${runId}: not at ${farm.address}`);
    if (group !== undefined && !(await farm.runs.instanceIds(runId)).includes(group))
      throw new UsageError(`--group ${group}: run ${runId} has no such instance`);
  }
  for (const runId of runs) {
    if (group === undefined) await farm.cancel.cancelRun(runId);
    else await farm.cancel.cancelGroup(runId, group);
  }
  if (rollouts.length > 0) await farm.cancel.cancelRollouts(rollouts);
  return group === undefined ? [...ids] : runs.map((runId) => `${group} of ${runId}`);
}

async function cancelVersion(farm: Farm, version: string): Promise<string[]> {
  const { runs } = await farm.groups.unfinishedRuns();
  const stale = runs.filter((run) => run.policy?.version === version).map((run) => run.run_id);
  if (stale.length === 0)
    throw new UsageError(`--policy-version ${version}: no unfinished run of it at ${farm.address}`);
  for (const runId of stale) await farm.cancel.cancelRun(runId, 'stale');
  return stale;
}
