/** `swefarm status`: shows runs, queue and workers of a farm. */
import { type FarmStatus, farmStatus, type RunStatus } from '@swefarm/gateway';
import { describeUnreadableRun, openFarm, type WorkerRecord } from '@swefarm/shared';
import { countNames, terminalSafe, withVerdict } from '@swefarm/trajectories';
import { admissionLines } from '../view/admission.ts';
import { left, right, tableOf } from '../view/columns.ts';
import { command, flag } from './declare.ts';
import { FARM, producerConfig } from './options.ts';
import { print, styled, widthOf } from './terminal.ts';

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

const warning = (text: string): string => styled('yellow', text, process.stdout);

function describe(status: FarmStatus, width: number): string {
  const waiting = (status.queue.prioritized ?? 0) + (status.queue.waiting ?? 0);
  const { active = 0, delayed = 0, failed = 0 } = status.queue;
  return [
    `${status.redis}: ${waiting} rollouts wait, ${active} run, ${delayed} wait for another attempt`,
    ...(failed > 0
      ? [styled('red', `${failed} jobs failed inside the queue: please report this as a bug`, process.stdout)]
      : []),
    runTable(status.runs, width),
    ...status.unreadable.map((run) => warning(describeUnreadableRun(run))),
    [...admissionLines(status.admission), workerTable(status.workers)].join('\n'),
  ].join('\n\n');
}

function runTable(runs: readonly RunStatus[], width: number): string {
  if (runs.length === 0) return 'no runs';
  const table = tableOf(runs.slice(0, MOST_RUNS), [
    left('run', (run) => run.run_id),
    left('created', (run) => run.created_at.slice(5, 16).replace('T', ' ')),
    left('agent', (run) => run.agent),
    right('done', (run) => `${run.committed}/${run.rollouts}`),
    right('resolved', (run) => `${run.resolved}/${withVerdict(run)}`),
    right('failed', (run) => `${run.failed}`),
    right('turns', (run) => run.turns_mean?.toFixed(1) ?? '–'),
    right('reward', (run) => run.reward_mean?.toFixed(2) ?? '–'),
    ...(width >= 110 ? [left('model', (run: RunStatus) => terminalSafe(run.model ?? '–'))] : []),
  ]);
  const more = runs.length - MOST_RUNS;
  const causes = runs.length === 1 ? Object.entries(runs[0]?.failures ?? {}) : [];
  return [
    table,
    ...(more > 0 ? [`… and ${more} older runs (--json lists all)`] : []),
    ...runs.flatMap(({ run_id: id, paused }) =>
      paused === null ? [] : [warning(`  ${id} is paused: ${terminalSafe(paused)}; swefarm resume ${id}`)],
    ),
    ...runs.flatMap(({ run_id: id, draws }) => {
      if (draws === null) return [];
      const dropped = Object.entries(draws.dropped).map(([why, count]) => `, ${count} ${why}`);
      return [
        `  ${id}: ${draws.selected} of ${draws.wanted} groups selected, ${draws.drawn} drawn of at most ${draws.most}${dropped.join('')}`,
      ];
    }),
    ...causes.map(([cause, times]) => `  failed ${cause}: ${times}`),
  ].join('\n');
}

function workerTable(workers: readonly WorkerRecord[]): string {
  if (workers.length === 0) return warning('no worker is alive: nothing runs, and deadlines do not fire');
  const table = tableOf(workers, [
    left('worker', (one) => one.worker),
    left('node', (one) => one.node),
    left('runtime', (one) => one.runtime),
    left('version', versionOf),
    left('busy', (one) => `${one.active}/${one.slots}`),
    left('up', (one) => `${Math.round((Date.now() - one.started_at) / 60_000)} min`),
    left('state', ({ paused }) => (paused === null ? 'claiming' : terminalSafe(`paused: ${paused}`))),
  ]);
  return [table, ...mixedVersions(workers)].join('\n');
}

const versionOf = (worker: WorkerRecord): string => terminalSafe(worker.software_version ?? 'unknown');

/** Returns a line with the versions if workers run different versions: an upgrade is in progress or missed a node. */
function mixedVersions(workers: readonly WorkerRecord[]): string[] {
  const counts = Object.entries(countNames(workers.map(versionOf)));
  if (counts.length < 2) return [];
  const shown = counts.sort(([, a], [, b]) => b - a).map(([version, count]) => `${version} (${count})`);
  return [warning(`workers of ${counts.length} versions: ${shown.join(', ')}`)];
}
