import { describeUnreadableRun } from '@swefarm/shared';
import { middle, terminalSafe, withVerdict } from '@swefarm/trajectories';
import { admissionLines } from './admission.ts';
import { type ColumnOf, left, right, tableOf } from './columns.ts';
import { duration } from './progress.ts';
import type { FarmView, WatchedRun } from './watching.ts';

export type ScreenOptions = {
  width: number;
  height: number;
  paint: (style: 'bold' | 'dim' | 'green' | 'red' | 'yellow', text: string) => string;
};

/** Width in characters below which the tables have fewer columns. */
const WIDE = 120;
const ONLY_WIDE = ['kind', 'model', '', 'running', 'reward'];
const BAR = 16;

/** Renders at most `height` lines of at most `width` characters. */
export function renderScreen(now: FarmView, options: ScreenOptions): string {
  const { width, height } = options;
  const parts = [heading(now, options), runTable(now.runs, options), workerTable(now, options)];
  const used = parts.reduce((sum, part) => sum + part.split('\n').length + 1, 0);
  const failures = failureLines(now, options, Math.max(2, height - used - 1));
  return [...parts, failures]
    .join('\n\n')
    .split('\n')
    .slice(0, height)
    .map((line) => clip(line, width))
    .join('\n');
}

function heading(
  { redis, queue, workers, stages, at, admission, unreadable }: FarmView,
  { paint }: ScreenOptions,
): string {
  const waiting = (queue.prioritized ?? 0) + (queue.waiting ?? 0);
  const slots = workers.reduce((sum, worker) => sum + worker.slots, 0);
  const active = workers.reduce((sum, worker) => sum + worker.active, 0);
  const busy = listed(stages);
  const delayed = queue.delayed ? `, ${queue.delayed} wait for another attempt` : '';
  return [
    `${paint('bold', 'swefarm')} ${redis}  ${new Date(at).toISOString().slice(11, 19)} UTC`,
    `${waiting} wait, ${active} of ${slots} slots busy${busy ? ` (${busy})` : ''}${delayed}`,
    ...admissionLines(admission),
    ...(queue.failed
      ? [paint('red', `${queue.failed} jobs failed inside the queue: please report this as a bug`)]
      : []),
    ...unreadable.map((run) => paint('yellow', oneLine(describeUnreadableRun(run)))),
  ].join('\n');
}

function runTable(runs: readonly WatchedRun[], { width, paint }: ScreenOptions): string {
  if (runs.length === 0) return 'no runs: swefarm submit or swefarm rollout makes one';
  const columns: ColumnOf<WatchedRun>[] = [
    left('run', (run) => run.run_id),
    left('kind', (run) => run.kind),
    left('model', (run) => middle(terminalSafe(run.model ?? run.agent), 24)),
    left('', bar),
    right('done', (run) => `${run.committed}/${run.rollouts}`),
    right('groups', (run) => `${run.groups_done}/${run.groups}`),
    right('resolved', (run) =>
      withVerdict(run) > 0 ? `${((100 * run.resolved) / withVerdict(run)).toFixed(1)} %` : '–',
    ),
    right('failed', (run) => (run.failed > 0 ? paint('red', String(run.failed)) : '0')),
    right('turns', (run) => run.turns_mean?.toFixed(1) ?? '–'),
    right('/min', ({ per_minute: rate }) => rate?.toFixed(rate < 10 ? 1 : 0) ?? '–'),
    right('left', timeLeft),
    right('running', (run) => String(run.running)),
    right('reward', (run) => run.reward_mean?.toFixed(2) ?? '–'),
  ];
  return tableOf(
    runs,
    columns.filter(({ name }) => width >= WIDE || !ONLY_WIDE.includes(name)),
  );
}

/** Renders the shares of resolved, unresolved, failed or cancelled, and open rollouts of a run as a bar. */
function bar(run: WatchedRun): string {
  const cells = (count: number): number => Math.round((BAR * count) / Math.max(1, run.rollouts));
  const resolved = cells(run.resolved);
  const unresolved = Math.min(BAR - resolved, cells(run.judged - run.resolved));
  const spoilt = Math.min(BAR - resolved - unresolved, cells(run.failed + run.cancelled));
  const open = BAR - resolved - unresolved - spoilt;
  return '█'.repeat(resolved) + '▒'.repeat(unresolved) + '!'.repeat(spoilt) + '·'.repeat(open);
}

function timeLeft(run: WatchedRun): string {
  const left = run.rollouts - run.committed;
  if (left <= 0) return 'done';
  return run.per_minute ? duration((60 * left) / run.per_minute) : '–';
}

const MOST_WORKERS = 10;

function workerTable({ workers, seconds }: FarmView, { paint }: ScreenOptions): string {
  const stages = byCount(seconds).flatMap(([stage, mean]) =>
    mean >= 0.05 ? `${stage} ${mean.toFixed(1)}` : [],
  );
  const times = stages.length > 0 ? `mean seconds: ${stages.join(', ')}` : 'nothing was judged yet';
  if (workers.length === 0)
    return `${paint('yellow', 'no worker is alive: nothing runs, and deadlines do not fire')}\n${times}`;
  const sorted = workers.toSorted((a, b) => Number(b.paused !== null) - Number(a.paused !== null));
  const table = tableOf(sorted.slice(0, MOST_WORKERS), [
    left('worker', (one) => one.worker),
    left('node', (one) => one.node),
    left('runtime', (one) => one.runtime),
    left('busy', (one) => `${one.active}/${one.slots}`),
    left('up', (one) => duration((Date.now() - one.started_at) / 1000)),
    left('state', ({ paused }) =>
      paused === null ? 'claiming' : paint('yellow', `paused: ${terminalSafe(paused)}`),
    ),
  ]);
  const more = workers.length - MOST_WORKERS;
  return [table, ...(more > 0 ? [`… and ${more} more workers`] : []), times].join('\n');
}

function failureLines(now: FarmView, { width, paint }: ScreenOptions, most: number): string {
  const { failures, runs } = now;
  if (failures.length === 0) return 'no failures';
  const shown = failures.slice(0, most - 1).map((one) => {
    const time = new Date(one.finished_at).toISOString().slice(11, 19);
    // The id of a single run is omitted. On a narrow screen, the node is omitted too.
    const name = runs.length === 1 ? one.rollout_id.slice(one.rollout_id.indexOf('.') + 1) : one.rollout_id;
    const who = middle(name, Math.max(24, Math.floor(width / 3)));
    const where = width >= WIDE ? ` ${one.node}` : '';
    return `${time} ${who}${where} ${paint('red', one.cause)}: ${oneLine(one.message)}`;
  });
  return [`${paint('bold', 'recent failures')}  ${causesOf(runs)}`, ...shown].join('\n');
}

function causesOf(runs: readonly WatchedRun[]): string {
  const sums: Record<string, number> = {};
  for (const [cause, times] of runs.flatMap(({ failures }) => Object.entries(failures)))
    sums[cause] = (sums[cause] ?? 0) + times;
  return listed(sums);
}

const byCount = (counts: Record<string, number>) => Object.entries(counts).sort(([, a], [, b]) => b - a);

const listed = (counts: Record<string, number>): string =>
  byCount(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');

const oneLine = (text: string): string => terminalSafe(text).replaceAll('\n', ' ');

/** Renders a line for logs: the sums over all runs, and the newest failure. */
export function plainLine({ runs, queue, workers, failures }: FarmView): string {
  const sum = (of: (run: WatchedRun) => number): number => runs.reduce((all, run) => all + of(run), 0);
  const judged = sum(withVerdict);
  const share = judged > 0 ? ` (${((100 * sum((run) => run.resolved)) / judged).toFixed(1)} %)` : '';
  const [newest] = failures;
  return [
    `swefarm: ${sum((run) => run.committed)}/${sum((run) => run.rollouts)} done`,
    `${sum((run) => run.resolved)}/${judged} resolved${share}`,
    `${sum((run) => run.failed)} failed`,
    `${(queue.prioritized ?? 0) + (queue.waiting ?? 0)} wait`,
    `${sum((run) => run.running)} run on ${workers.length} workers`,
    `${sum((run) => run.per_minute ?? 0).toFixed(1)}/min`,
    ...(newest ? [`last failure ${newest.cause}: ${oneLine(newest.message).slice(0, 120)}`] : []),
  ].join(', ');
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: our own colours
const STYLE = /\u001b\[\d+m/g;

/** Cuts the visible text of a line to the width; colours are reset at the end. */
export function clip(line: string, width: number): string {
  if (line.replace(STYLE, '').length <= width) return line;
  let seen = 0;
  let out = '';
  for (let at = 0; at < line.length && seen < width - 1; ) {
    STYLE.lastIndex = at;
    const style = STYLE.exec(line);
    if (style?.index === at) {
      out += style[0];
      at += style[0].length;
      continue;
    }
    out += line[at];
    at += 1;
    seen += 1;
  }
  return `${out}…${out.includes('\u001b[') ? '\u001b[0m' : ''}`;
}
