/** Shows the progress of a run on standard error: a bar that redraws on a terminal, else a plain line at intervals. */
import type { LineSummary } from '@swefarm/trajectories';
import { addResult, emptyTally, meansOf, type Tally, withVerdict } from '@swefarm/trajectories';

export type Sink = { write(text: string): unknown; isTTY?: boolean; columns?: number };

export type Progress = {
  add(line: LineSummary): void;
  /** Sets the number of running rollouts, and a note, such as the reason why workers are paused. */
  note(running: number | null, note: string | null): void;
  /** Prints a permanent line above the bar. */
  printLine(text: string): void;
  stop(): void;
};

export type ProgressCounts = {
  /** Number of rollouts of the whole run. */
  expected: number;
  sums: Tally;
  running: number | null;
  /** Number of lines that this process collected, for the rate and the remaining time. */
  fresh: number;
  seconds: number;
  note: string | null;
  words?: ProgressWords;
};

const PLAIN_EVERY_MS = 10_000;
const REDRAW_MS = 250;
const CLEAR_LINE = '\r\u001b[2K';
const HIDE_CURSOR = '\u001b[?25l';
const SHOW_CURSOR = '\u001b[?25h';

/** Whether the progress shows resolved rollouts and turns: evaluations have no turns, and untouched trees do not resolve. */
export type ProgressWords = { resolved: boolean; turns: boolean };

/** Starts the display. `already`: lines from an earlier start of the same run. */
export function startProgress(
  expected: number,
  already: Iterable<LineSummary>,
  sink: Sink = process.stderr,
  words: ProgressWords = { resolved: true, turns: true },
): Progress {
  const started = Date.now();
  const counts: ProgressCounts = {
    expected,
    sums: emptyTally(),
    running: null,
    fresh: 0,
    seconds: 0,
    note: null,
    words,
  };
  for (const line of already) addResult(counts.sums, line);
  const now = (): ProgressCounts => ({ ...counts, seconds: (Date.now() - started) / 1000 });
  const shown = sink.isTTY ? bar(sink, now) : plainLines(sink, now);
  return {
    add(line) {
      addResult(counts.sums, line);
      counts.fresh += 1;
    },
    note(running, note) {
      counts.running = running;
      counts.note = note;
    },
    printLine: shown.printLine,
    stop: shown.stop,
  };
}

type Shown = Pick<Progress, 'printLine' | 'stop'>;

/** Redraws one line on a terminal, and hides the cursor until `stop`. */
function bar(sink: Sink, now: () => ProgressCounts): Shown {
  const draw = (): void => void sink.write(`${CLEAR_LINE}${barLine(now(), sink.columns || 80)}`);
  // The cursor must reappear after an unexpected end of the process too.
  const showCursor = (): void => void sink.write(`${SHOW_CURSOR}\n`);
  process.once('exit', showCursor);
  sink.write(HIDE_CURSOR);
  draw();
  const timer = setInterval(draw, REDRAW_MS);
  timer.unref();
  return {
    printLine(text) {
      sink.write(`${CLEAR_LINE}${text}\n`);
      draw();
    },
    stop() {
      clearInterval(timer);
      process.off('exit', showCursor);
      sink.write(`${CLEAR_LINE}${SHOW_CURSOR}`);
    },
  };
}

function plainLines(sink: Sink, now: () => ProgressCounts): Shown {
  let last = '';
  const print = (): void => {
    const line = plainLine(now());
    // The remaining time changes without any progress, so the comparison ignores it.
    const key = line.replace(/, about .*/, '');
    if (key !== last) sink.write(`${line}\n`);
    last = key;
  };
  const timer = setInterval(print, PLAIN_EVERY_MS);
  timer.unref();
  return {
    printLine: (text) => void sink.write(`${text}\n`),
    stop() {
      clearInterval(timer);
      print();
    },
  };
}

/** Returns the facts that the bar and the plain line show, most important first. */
function facts(counts: ProgressCounts): string[] {
  const { expected, sums, running, fresh, seconds, words } = counts;
  const { total: done, resolved, scored, failed } = sums;
  const { turns_mean } = meansOf(sums);
  const perMinute = seconds > 0 ? (fresh / seconds) * 60 : 0;
  const left = fresh > 0 && done < expected ? ((expected - done) * seconds) / fresh : null;
  return [
    `${done}/${expected} done`,
    ...(words?.resolved === false ? [] : [`${resolved}/${withVerdict(sums)} resolved`]),
    ...(scored > 0 ? [`${scored} scored`] : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(counts.note === null ? [] : [counts.note]),
    ...(left === null ? [] : [`about ${duration(left)} left`]),
    ...(running === null || done === expected ? [] : [`${running} running`]),
    ...(turns_mean === null || words?.turns === false ? [] : [`${turns_mean.toFixed(1)} turns`]),
    ...(fresh > 0 ? [`${perMinute < 10 ? perMinute.toFixed(1) : Math.round(perMinute)}/min`] : []),
  ];
}

export function plainLine(counts: ProgressCounts): string {
  return `swefarm: ${facts(counts).join(', ')}`;
}

/** Renders a bar of at least ten cells, and then as many facts as fit into `width`. */
export function barLine(counts: ProgressCounts, width: number): string {
  const { expected, sums } = counts;
  const least = 12;
  let text = '';
  for (const fact of facts(counts)) {
    const longer = text === '' ? fact : `${text} · ${fact}`;
    if (longer.length + least + 1 >= width) break;
    text = longer;
  }
  const cells = Math.min(40, Math.max(10, width - text.length - 4));
  const full = expected > 0 ? Math.round((Math.min(sums.total, expected) / expected) * cells) : cells;
  return `${'█'.repeat(full)}${'░'.repeat(cells - full)} ${text}`.slice(0, Math.max(1, width - 1));
}

/** Formats seconds as `45 s`, `12 min` or `3 h 05 min`. */
export function duration(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 90) return `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
}
