/** `swefarm pause`, `resume`, `cancel` and `drain`: commands that change what a farm runs. */
import { type Farm, parseRolloutId, resumeRun, UsageError } from '@swefarm/shared';
import { command, flag, text } from './declare.ts';
import { openFarmPatiently } from './farm.ts';
import { FARM, type FarmValues, producerConfig } from './options.ts';
import { printStatus } from './terminal.ts';

const RUN = { '<run>': 'id of the run' };

export const pause = command({
  arguments: RUN,
  options: FARM,
  example: 'swefarm pause RUN',
  run: (o, { run }) =>
    withRun(o, run, async (farm) => {
      await farm.groups.pause(run, 'paused by hand');
      printStatus(`run ${run} is paused; resume it with: swefarm resume ${run}`);
    }),
});

export const resume = command({
  arguments: RUN,
  options: FARM,
  example: 'swefarm resume RUN',
  run: (o, { run }) =>
    withRun(o, run, async (farm) => {
      const paused = await farm.groups.paused(run);
      if (!paused || paused.reason === null) throw new UsageError(`run ${run} is not paused`);
      await resumeRun(farm, run);
      printStatus(`run ${run} is resumed; it was paused because: ${paused.reason}`);
    }),
});

async function withRun(o: FarmValues, run: string, act: (farm: Farm) => Promise<void>): Promise<void> {
  await using farm = await openFarmPatiently(producerConfig(o));
  if (!(await farm.runs.exists(run)))
    throw new UsageError(`run ${run}: not at ${farm.address}; swefarm status lists all runs`);
  await act(farm);
}

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

export const drain = command({
  arguments: { '<node>': 'name of the node, as swefarm status shows it' },
  options: { '--undo': flag('let the node claim again'), ...FARM },
  example: 'swefarm drain node7',
  async run(o, { node }) {
    await using farm = await openFarmPatiently(producerConfig(o));
    const known = (await farm.registry.list()).filter((worker) => worker.node === node);
    if (known.length === 0 && !(await farm.nodes.drained()).has(node)) {
      throw new UsageError(`node ${node}: no worker is alive there; swefarm status lists nodes`);
    }
    if (o.undo) await farm.nodes.undrain(node);
    else await farm.nodes.drain(node);
    const running = known.reduce((sum, worker) => sum + worker.active, 0);
    printStatus(
      o.undo
        ? `${node} claims rollouts again`
        : `${node} claims nothing more; ${running} rollouts run there (--undo lets it claim again)`,
    );
  },
});
