/** `swefarm status`: shows runs, queue and workers of a farm. */
import { type FarmStatus, farmStatus, type RunStatus } from '@swefarm/gateway';
import { describeUnreadableRun, openFarm, type WorkerRecord } from '@swefarm/shared';
import { type Column, renderTable, terminalSafe, withVerdict } from '@swefarm/trajectories';
import { command, flag } from './declare.ts';
import { FARM, producerConfig } from './options.ts';
import { print, styled, widthOf } from './terminal.ts';

/** Maximum number of runs shown on a terminal. */
const MOST_RUNS = 20;

export const status = command({
  arguments: { '[run]': 'id of a run' },
  options: { '--json': flag('print JSON (the default in a pipe)'), ...FARM },
  example: 'swefarm status --json',
  async run(o, { run }) {
    await using farm = await openFarm(producerConfig(o), 'producer');
    const found = await farmStatus(farm, run);
    const human = process.stdout.isTTY && !o.json;
    await print(human ? describe(found, widthOf(process.stdout)) : JSON.stringify(found));
  },
});

function describe(status: FarmStatus, width: number): string {
  const waiting = (status.queue.prioritized ?? 0) + (status.queue.waiting ?? 0);
  const { active = 0, delayed = 0, failed = 0 } = status.queue;
  const lines = [
    `${status.redis}: ${waiting} rollouts wait, ${active} run, ${delayed} wait for another attempt`,
    ...(failed > 0
      ? [styled('red', `${failed} jobs failed inside the queue: please report this as a bug`, process.stdout)]
      : []),
    runTable(status.runs, width),
    ...status.unreadable.map((run) => styled('yellow', describeUnreadableRun(run), process.stdout)),
    workerTable(status.workers),
  ];
  return lines.join('\n\n');
}

function runTable(runs: readonly RunStatus[], width: number): string {
  if (runs.length === 0) return 'no runs';
  const wide = width >= 110;
  const numbers = ['done', 'resolved', 'failed', 'turns', 'reward'].map((name) => ({
    name,
    align: 'right' as const,
  }));
  const columns: Column[] = [{ name: 'run' }, { name: 'created' }, { name: 'agent' }, ...numbers];
  if (wide) columns.push({ name: 'model' });
  const rows = runs
    .slice(0, MOST_RUNS)
    .map((run) => [
      run.run_id,
      run.created_at.slice(5, 16).replace('T', ' '),
      run.agent,
      `${run.committed}/${run.rollouts}`,
      `${run.resolved}/${withVerdict(run)}`,
      `${run.failed}`,
      run.turns_mean?.toFixed(1) ?? '–',
      run.reward_mean?.toFixed(2) ?? '–',
      ...(wide ? [terminalSafe(run.model ?? '–')] : []),
    ]);
  const more = runs.length - MOST_RUNS;
  const causes = runs.length === 1 ? Object.entries(runs[0]?.failures ?? {}) : [];
  return [
    renderTable(columns, rows),
    ...(more > 0 ? [`… and ${more} older runs (--json lists all)`] : []),
    ...runs
      .filter((run) => run.paused !== null)
      .map((run) =>
        styled(
          'yellow',
          `  ${run.run_id} is paused: ${terminalSafe(run.paused ?? '')}; swefarm resume ${run.run_id}`,
          process.stdout,
        ),
      ),
    ...causes.map(([cause, times]) => `  failed ${cause}: ${times}`),
  ].join('\n');
}

function workerTable(workers: readonly WorkerRecord[]): string {
  if (workers.length === 0)
    return styled('yellow', 'no worker is alive: nothing runs, and deadlines do not fire', process.stdout);
  const columns = ['worker', 'node', 'runtime', 'version', 'busy', 'up', 'state'].map((name) => ({ name }));
  const rows = workers.map((one) => {
    const minutes = Math.round((Date.now() - one.started_at) / 60_000);
    const state = one.paused === null ? 'claiming' : `paused: ${one.paused}`;
    return [
      one.worker,
      one.node,
      one.runtime,
      versionOf(one),
      `${one.active}/${one.slots}`,
      `${minutes} min`,
      terminalSafe(state),
    ];
  });
  return [renderTable(columns, rows), ...mixedVersions(workers)].join('\n');
}

const versionOf = (worker: WorkerRecord): string => terminalSafe(worker.software_version ?? 'unknown');

/** Returns a line with the versions if workers run different versions: an upgrade is in progress or missed a node. */
function mixedVersions(workers: readonly WorkerRecord[]): string[] {
  const counts = new Map<string, number>();
  for (const one of workers) counts.set(versionOf(one), (counts.get(versionOf(one)) ?? 0) + 1);
  if (counts.size < 2) return [];
  const shown = [...counts].sort(([, a], [, b]) => b - a).map(([version, count]) => `${version} (${count})`);
  return [styled('yellow', `workers of ${counts.size} versions: ${shown.join(', ')}`, process.stdout)];
}
