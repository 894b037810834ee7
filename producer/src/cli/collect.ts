/** `swefarm collect`: writes the results of a submitted run into a file or a pipe until the run is done. */
import { rolloutIds } from '@swefarm/runs';
import { UsageError } from '@swefarm/shared';
import { markOf, outputRunOf, readPrice } from './collection.ts';
import { command, flag, text, whole } from './declare.ts';
import { readDrawnRun } from './drawnrun.ts';
import { openFarmPatiently } from './farm.ts';
import { FARM, producerConfig } from './options.ts';
import { checkOutputFormat, OUTPUT, openRunOutput, readResumedRun, requireSameRun } from './outputs.ts';
import { reportRunEnd } from './runend.ts';
import { follow } from './session.ts';
import { listenForStop } from './stop.ts';
import { printStatus } from './terminal.ts';

export const collect = command({
  arguments: { '<run>': 'the id that submit printed' },
  options: {
    '--resume': flag('continue an output file that exists'),
    ...OUTPUT,
    '--min-group <n>': whole('judged rollouts that are enough for a group'),
    '--tag <tag>': text('the set of a collection that the run is: each line carries it'),
    ...FARM,
  },
  example: 'swefarm collect RUN --output results.jsonl',
  async run(o, { run: runId }) {
    const config = producerConfig(o);
    const { output: path, outputFormat: rows } = o;
    checkOutputFormat(rows, path);
    const stored = await readResumedRun(path, rows, o.resume && path !== '-');
    requireSameRun(path, runId, stored);
    if (stored?.as_needed === true) {
      throw new UsageError(
        `${path}: its rollouts were queued as results came, so only the same command with --resume continues it`,
      );
    }
    const { draining: signal } = listenForStop(() =>
      printStatus('swefarm: stopping after the existing results are written; Ctrl-C again stops at once'),
    );
    await using farm = await openFarmPatiently(config, signal);
    const record = await farm.runs.get(runId);
    if (!record) {
      throw new UsageError(`run ${runId}: not at ${farm.address}; swefarm status lists all runs`);
    }
    const tag = o.tag ?? stored?.tag;
    const instanceIds = await farm.runs.instanceIds(runId);
    const mark = markOf(tag, readPrice(o, config, record), null);
    await using output = await openRunOutput(path, outputRunOf(record, null, rows, { tag }), async () => {
      const found = await Array.fromAsync(instanceIds, (id) => farm.runs.getInstance(runId, id));
      return found.filter((instance) => instance !== null);
    });
    const named = instanceIds.map((instance_id) => ({ instance_id }));
    const rollouts = new Set(record.until === null ? rolloutIds(record, named) : []);
    const { complete, unreadable } = await follow({
      ...{ farm, config, record, rollouts, output, mark, signal },
      copyArtifactsTo: o.copyArtifacts,
    });
    return reportRunEnd({
      ...{ record, instanceIds, output, complete, unreadable },
      drawn: await readDrawnRun(farm, record),
      minGroup: o.minGroup ?? record.min_group ?? undefined,
      outputLines: path === '-' ? [] : [`results: ${path}`],
      resumeHint: `continue with: swefarm collect ${runId} --output ${path} --output-format ${rows} --resume`,
    });
  },
});
