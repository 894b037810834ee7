/** `swefarm cancel`: a run, a group, single rollouts or a policy version. Running rollouts end, waiting ones never start. */
import { type Farm, parseRolloutId, UsageError } from '@swefarm/shared';
import type { Command } from 'commander';
import { openFarmPatiently } from './farm.ts';
import { addFarmOptions, type Flags, producerConfig } from './options.ts';
import { say } from './terminal.ts';

export function addCancel(program: Command): void {
  const command = program
    .command('cancel')
    .argument('[ids...]', 'run or rollout ids')
    .option('--group <instance>', 'cancel only the rollouts of this instance in the given runs')
    .option('--policy-version <name>', 'cancel every unfinished run of these weights, as stale');
  addFarmOptions(command).action(async (ids: string[], flags: Flags) => {
    await using farm = await openFarmPatiently(producerConfig(flags));
    const cancelled = await cancel(farm, ids, flags);
    say(`cancelled ${cancelled.join(', ')}; workers stop within two seconds`);
  });
}

async function cancel(farm: Farm, ids: readonly string[], flags: Flags): Promise<string[]> {
  const version = flags.policyVersion as string | undefined;
  const group = flags.group as string | undefined;
  if (version !== undefined) {
    if (ids.length > 0 || group !== undefined)
      throw new UsageError('--policy-version goes alone: it means every run of that version');
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
