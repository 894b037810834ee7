/** Sums of results over policy versions and over time, in bounded memory. */
import { addResult, type Countable, emptyTally, meansOf, ratio, type Tally } from '@swefarm/trajectories';
import type { PageTrends } from './data.ts';

/** `finished_at`: milliseconds since the epoch. */
export type TrendResult = Countable & { tokens: number; version: string | null; finished_at: number };

type Sums = Tally & { tokens_sum: number };
/** Sums over the results of a period, or of the versions from `version` to `until`. */
type Bin = { from: number; to: number; version: string | null; until: string | null; sums: Sums };

/** Maximum number of bins. If another bin is needed, neighbouring bins are merged. */
const MOST_BINS = 240;
/** Maximum number of versions whose bin is remembered, so that late results of a version count in the same bin. */
const MOST_NAMES = 5_000;
/** Approximate number of points over time. All points have about the same number of results. */
const TIME_POINTS = 30;
const LEAST_WIDTH_MS = 60_000;

/** Returns a series for each chosen run (null: the newest runs), or without `each` one series for all chosen runs. */
export async function trendsOf(
  runs: PageTrends['runs'],
  chosen: readonly string[] | null,
  each: boolean,
  read: (runId: string) => Promise<Trend>,
): Promise<PageTrends> {
  const newest = runs.toSorted((a, b) => (a.created_at > b.created_at ? -1 : 1)).slice(0, MOST_LISTED);
  const ids = chosen ?? newest.slice(0, USUAL_RUNS).map(({ run_id }) => run_id);
  const whole = new Trend();
  const series: PageTrends['series'] = [];
  // The oldest run comes first, so that the versions are in their order of creation.
  const created = new Map(runs.map(({ run_id, created_at }) => [run_id, created_at]));
  const order = ids.toSorted((a, b) => ((created.get(a) ?? '') < (created.get(b) ?? '') ? -1 : 1));
  for (const run_id of order) {
    const trend = await read(run_id);
    if (each) series.push({ run_id, ...trend.points() });
    else whole.merge(trend);
  }
  return { runs: newest, series: each ? series : [{ run_id: null, ...whole.points() }] };
}

const MOST_LISTED = 200;
const USUAL_RUNS = 24;

export class Trend {
  readonly #times = new Bins(LEAST_WIDTH_MS);
  readonly #versions = new Bins(1);
  /** Position of each version in the order of first results. */
  readonly #numbers = new Map<string, number>();
  #next = 0;
  readonly #all: Bin = emptyBin(Infinity);

  add(result: TrendResult): void {
    addTo(this.#all, result);
    addTo(this.#times.at(result.finished_at, result.finished_at), result);
    addTo(this.#versionBin(result.version ?? '', result.finished_at), result);
  }

  /** Adds the results of another trend. New versions follow the versions of this trend. */
  merge(other: Trend): void {
    join(this.#all, other.#all);
    this.#times.widen(other.#times.width);
    for (const bin of other.#times.bins.values()) join(this.#times.at(bin.from, bin.from), bin);
    for (const bin of other.#versions.bins.values()) {
      const own = this.#versionBin(bin.version ?? '', bin.from);
      join(own, bin);
      own.until = bin.until ?? own.until;
    }
  }

  points(): Omit<PageTrends['series'][number], 'run_id'> {
    const times = [...this.#times.bins].toSorted(([a], [b]) => a - b).map(([, bin]) => bin);
    return {
      all: pointOf(this.#all),
      times: evened(times, this.#all.sums.total / TIME_POINTS).map(pointOf),
      versions: [...this.#versions.bins.values()].map(pointOf),
    };
  }

  #versionBin(name: string, at: number): Bin {
    const known = this.#numbers.get(name);
    if (known !== undefined) return this.#versions.at(known, at);
    const bin = this.#versions.at(this.#next, at);
    if (bin.version === null) bin.version = name;
    else bin.until = name;
    this.#numbers.set(name, this.#next++);
    const [oldest] = this.#numbers.keys();
    if (this.#numbers.size > MOST_NAMES && oldest !== undefined) this.#numbers.delete(oldest);
    return bin;
  }
}

/** At most `MOST_BINS` bins of equal width for integer keys. The width doubles when another bin is needed. */
class Bins {
  bins = new Map<number, Bin>();
  width: number;

  constructor(width: number) {
    this.width = width;
  }

  /** @param at start of a new bin, in milliseconds since the epoch */
  at(key: number, at: number): Bin {
    for (;;) {
      const slot = Math.floor(key / this.width);
      const bin = this.bins.get(slot) ?? emptyBin(at);
      if (this.bins.has(slot) || this.bins.size < MOST_BINS) {
        this.bins.set(slot, bin);
        return bin;
      }
      this.widen(this.width * 2);
    }
  }

  widen(width: number): void {
    for (; this.width < width; this.width *= 2) {
      const wider = new Map<number, Bin>();
      for (const [slot, bin] of this.bins) {
        const half = Math.floor(slot / 2);
        const first = wider.get(half);
        if (first) {
          join(first, bin);
          first.until = bin.until ?? bin.version;
        } else wider.set(half, bin);
      }
      this.bins = wider;
    }
  }
}

/** Joins neighbouring bins until each bin except the last has at least `least` results. */
function evened(bins: readonly Bin[], least: number): Bin[] {
  const joined: Bin[] = [];
  for (const bin of bins) {
    const last = joined.at(-1);
    if (last && last.sums.total < least) join(last, bin);
    else joined.push({ ...bin, sums: { ...bin.sums } });
  }
  return joined;
}

const emptyBin = (at: number): Bin => ({
  from: at,
  to: at === Infinity ? -Infinity : at,
  version: null,
  until: null,
  sums: { ...emptyTally(), tokens_sum: 0 },
});

function addTo(bin: Bin, result: TrendResult): void {
  bin.from = Math.min(bin.from, result.finished_at);
  bin.to = Math.max(bin.to, result.finished_at);
  addResult(bin.sums, result);
  if (result.outcome === 'judged') bin.sums.tokens_sum += result.tokens;
}

function join(into: Bin, { from, to, sums }: Bin): void {
  into.from = Math.min(into.from, from);
  into.to = Math.max(into.to, to);
  for (const key of Object.keys(sums) as (keyof Sums)[]) into.sums[key] += sums[key];
}

function pointOf({ from, to, version, until, sums }: Bin): PageTrends['series'][number]['all'] {
  return {
    ...{ from: Number.isFinite(from) ? from : 0, to: Number.isFinite(to) ? to : 0, version, until },
    rollouts: sums.total,
    judged: sums.judged,
    ...meansOf(sums),
    tokens_mean: ratio(sums.tokens_sum, sums.judged),
    failure_rate: ratio(sums.failed, sums.total - sums.cancelled),
  };
}
