/** How far a run is, on stderr: one bar that redraws on a terminal, a plain line now and then elsewhere. */
import cliProgress from 'cli-progress';
import type { Tally } from '../output/line.ts';

export type Sink = { write(text: string): unknown; isTTY?: boolean; columns?: number };

export type Progress = {
  /** Counts a new line. */
  add(line: Tally): void;
  /** How many rollouts run now, and what is worth saying about them. */
  note(running: number | null, note: string | null): void;
  /** A line that stays, above the bar. */
  say(text: string): void;
  stop(): void;
};

export type ProgressCounts = {
  total: number;
  done: number;
  resolved: number;
  failed: number;
  judged: number;
  turns: number;
  running: number | null;
  /** Done since this process began, for rate and time left. */
  fresh: number;
  seconds: number;
  note: string | null;
};

const PLAIN_EVERY_MS = 10_000;
const REDRAW_MS = 250;

/** `already`: lines that an earlier start of the same run left. */
export function startProgress(
  total: number,
  already: Iterable<Tally>,
  sink: Sink = process.stderr,
): Progress {
  const started = Date.now();
  const counts: ProgressCounts = {
    ...{ total, done: 0, resolved: 0, failed: 0, judged: 0, turns: 0 },
    ...{ running: null, fresh: 0, seconds: 0, note: null },
  };
  const count = (line: Tally): void => {
    counts.done += 1;
    if (line.outcome === 'judged') {
      counts.judged += 1;
      counts.turns += line.turns;
      if (line.resolved) counts.resolved += 1;
    }
    if (line.outcome === 'failed') counts.failed += 1;
  };
  for (const line of already) count(line);
  const now = (): ProgressCounts => ({ ...counts, seconds: (Date.now() - started) / 1000 });
  const shown = sink.isTTY ? bar(sink, now) : plainLines(sink, now);
  return {
    add(line) {
      count(line);
      counts.fresh += 1;
    },
    note(running, note) {
      counts.running = running;
      counts.note = note;
    },
    say: shown.say,
    stop: shown.stop,
  };
}

type Shown = Pick<Progress, 'say' | 'stop'>;

function bar(sink: Sink, now: () => ProgressCounts): Shown {
  const first = now();
  const drawn = new cliProgress.SingleBar({
    stream: sink as NodeJS.WritableStream,
    format: () => barLine(now(), sink.columns ?? 80),
    hideCursor: true,
    clearOnComplete: true,
    noTTYOutput: false,
    fps: 1000 / REDRAW_MS,
    gracefulExit: false,
  });
  drawn.start(Math.max(1, first.total), first.done);
  const timer = setInterval(() => drawn.update(now().done), REDRAW_MS);
  timer.unref();
  // The bar hides the cursor; a process that ends in the middle must give it back.
  const showCursor = (): void => void sink.write('\u001b[?25h\n');
  process.once('exit', showCursor);
  return {
    say(text) {
      // Clears the bar's line; the next redraw writes it anew below.
      sink.write(`\r\u001b[2K${text}\n`);
      drawn.update(now().done);
    },
    stop() {
      clearInterval(timer);
      process.off('exit', showCursor);
      drawn.stop();
    },
  };
}

function plainLines(sink: Sink, now: () => ProgressCounts): Shown {
  let last = '';
  const print = (): void => {
    const line = plainLine(now());
    // Only the time left moves on by itself: then there is nothing to say.
    const key = line.replace(/, about .*/, '');
    if (key !== last) sink.write(`${line}\n`);
    last = key;
  };
  const timer = setInterval(print, PLAIN_EVERY_MS);
  timer.unref();
  return {
    say: (text) => void sink.write(`${text}\n`),
    stop() {
      clearInterval(timer);
      print();
    },
  };
}

/** The facts both forms show, most important first. */
function facts(counts: ProgressCounts): string[] {
  const { done, total, resolved, judged, failed, turns, running, fresh, seconds } = counts;
  const perMinute = seconds > 0 ? (fresh / seconds) * 60 : 0;
  const left = fresh > 0 && done < total ? ((total - done) * seconds) / fresh : null;
  return [
    `${done}/${total} done`,
    `${resolved}/${judged} resolved`,
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(counts.note === null ? [] : [counts.note]),
    ...(left === null ? [] : [`about ${duration(left)} left`]),
    ...(running === null || done === total ? [] : [`${running} running`]),
    ...(judged > 0 ? [`${(turns / judged).toFixed(1)} turns`] : []),
    ...(fresh > 0 ? [`${perMinute < 10 ? perMinute.toFixed(1) : Math.round(perMinute)}/min`] : []),
  ];
}

export function plainLine(counts: ProgressCounts): string {
  return `swefarm: ${facts(counts).join(', ')}`;
}

/** As much as fits into `width`: a bar of at least ten cells, then the facts in their order. */
export function barLine(counts: ProgressCounts, width: number): string {
  const least = 12;
  let text = '';
  for (const fact of facts(counts)) {
    const longer = text === '' ? fact : `${text} · ${fact}`;
    if (longer.length + least + 1 >= width) break;
    text = longer;
  }
  const cells = Math.min(40, Math.max(10, width - text.length - 4));
  const full =
    counts.total > 0 ? Math.round((Math.min(counts.done, counts.total) / counts.total) * cells) : cells;
  return `${'█'.repeat(full)}${'░'.repeat(cells - full)} ${text}`.slice(0, Math.max(1, width - 1));
}

/** `45 s`, `12 min`, `3 h 05 min`. */
export function duration(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 90) return `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
}
