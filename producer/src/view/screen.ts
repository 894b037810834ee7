import { describeUnreadableRun } from '@swefarm/shared';
import { type Column, middle, renderTable, terminalSafe, withVerdict } from '@swefarm/trajectories';
import { duration } from './progress.ts';
import type { FarmView, WatchedRun } from './watching.ts';

export type ScreenOptions = {
  width: number;
  height: number;
  paint: (style: 'bold' | 'dim' | 'green' | 'red' | 'yellow', text: string) => string;
};

/** Width in characters below which the tables have fewer columns. */
const WIDE = 120;
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
  { redis, queue, workers, stages, at, unreadable }: FarmView,
  { paint }: ScreenOptions,
): string {
  const waiting = (queue.prioritized ?? 0) + (queue.waiting ?? 0);
  const slots = workers.reduce((sum, worker) => sum + worker.slots, 0);
  const active = workers.reduce((sum, worker) => sum + worker.active, 0);
  const names = Object.entries(stages).sort(([, a], [, b]) => b - a);
  const busy = names.map(([stage, count]) => `${stage} ${count}`).join(', ');
  const delayed = queue.delayed ? `, ${queue.delayed} wait for another attempt` : '';
  return [
    `${paint('bold', 'swefarm')} ${redis}  ${new Date(at).toISOString().slice(11, 19)} UTC`,
    `${waiting} wait, ${active} of ${slots} slots busy${busy ? ` (${busy})` : ''}${delayed}`,
    ...(queue.failed
      ? [paint('red', `${queue.failed} jobs failed inside the queue: please report this as a bug`)]
      : []),
    ...unreadable.map((run) => paint('yellow', oneLine(describeUnreadableRun(run)))),
  ].join('\n');
}

function runTable(runs: readonly WatchedRun[], { width, paint }: ScreenOptions): string {
  if (runs.length === 0) return 'no runs: swefarm submit or swefarm rollout makes one';
  const wide = width >= WIDE;
  const right = (name: string): Column => ({ name, align: 'right' });
  const columns: Column[] = [
    { name: 'run' },
    ...(wide ? [{ name: 'kind' }, { name: 'model' }, { name: '' }] : []),
    right('done'),
    right('groups'),
    right('resolved'),
    right('failed'),
    right('turns'),
    right('/min'),
    right('left'),
    ...(wide ? [right('running'), right('reward')] : []),
  ];
  const rows = runs.map((run) => [
    run.run_id,
    ...(wide ? [run.kind, middle(terminalSafe(run.model ?? run.agent), 24), bar(run)] : []),
    `${run.committed}/${run.rollouts}`,
    `${run.groups_done}/${run.groups}`,
    withVerdict(run) > 0 ? `${((100 * run.resolved) / withVerdict(run)).toFixed(1)} %` : '–',
    run.failed > 0 ? paint('red', String(run.failed)) : '0',
    run.turns_mean?.toFixed(1) ?? '–',
    run.per_minute === null ? '–' : run.per_minute.toFixed(run.per_minute < 10 ? 1 : 0),
    timeLeft(run),
    ...(wide ? [String(run.running), run.reward_mean?.toFixed(2) ?? '–'] : []),
  ]);
  return renderTable(columns, rows);
}

/** Renders the shares of resolved, unresolved, failed and open rollouts of a run as a bar. */
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
  const stages = Object.entries(seconds)
    .filter(([, mean]) => mean >= 0.05)
    .sort(([, a], [, b]) => b - a)
    .map(([stage, mean]) => `${stage} ${mean.toFixed(1)}`);
  const times = stages.length > 0 ? `mean seconds: ${stages.join(', ')}` : 'nothing was judged yet';
  if (workers.length === 0)
    return `${paint('yellow', 'no worker is alive: nothing runs, and deadlines do not fire')}\n${times}`;
  const sorted = workers.toSorted((a, b) => Number(b.paused !== null) - Number(a.paused !== null));
  const rows = sorted
    .slice(0, MOST_WORKERS)
    .map((one) => [
      one.worker,
      one.node,
      one.runtime,
      `${one.active}/${one.slots}`,
      duration((Date.now() - one.started_at) / 1000),
      one.paused === null ? 'claiming' : paint('yellow', `paused: ${terminalSafe(one.paused)}`),
    ]);
  const more = workers.length - MOST_WORKERS;
  const columns: Column[] = ['worker', 'node', 'runtime', 'busy', 'up', 'state'].map((name) => ({ name }));
  return [renderTable(columns, rows), ...(more > 0 ? [`… and ${more} more workers`] : []), times].join('\n');
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

/** Counts failures by class, most frequent first. */
function causesOf(runs: readonly WatchedRun[]): string {
  const sums = new Map<string, number>();
  for (const { failures } of runs) {
    for (const [cause, times] of Object.entries(failures)) sums.set(cause, (sums.get(cause) ?? 0) + times);
  }
  return [...sums]
    .sort(([, a], [, b]) => b - a)
    .map(([cause, times]) => `${cause} ${times}`)
    .join(', ');
}

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
