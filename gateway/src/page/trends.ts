/** How the results of runs change over policy versions and over time, in bounded memory however many results there are. Pure. */
import { addResult, type Countable, emptyTally, meansOf, ratio, type Tally } from '@swefarm/trajectories';
import type { PageTrends } from './data.ts';

/** A result as trends count it. `finished_at`: milliseconds. */
export type TrendResult = Countable & { tokens: number; version: string | null; finished_at: number };

type Sums = Tally & { tokens_sum: number };
/** Results of one stretch of time, or of versions from `version` to `until`. */
type Bin = { from: number; to: number; version: string | null; until: string | null; sums: Sums };

/** More points than a plot of this width shows; neighbours are then counted as one. */
const MOST_BINS = 240;
/** Names of versions that are remembered, so that a late result counts with its version. */
const MOST_NAMES = 5_000;
/** Points over time; each stands for about as many results as the others. */
const TIME_POINTS = 30;
const LEAST_WIDTH_MS = 60_000;

/** The answer to the page: the chosen runs (none given: the newest), each by itself or all as one. */
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
  // Oldest first, which is the order in which their versions were made.
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
  #times = new Map<number, Bin>();
  #widthMs = LEAST_WIDTH_MS;
  /** In the order of their first result. */
  #versions: Bin[] = [];
  #byName = new Map<string, Bin>();
  /** How many versions share a bin. */
  #stride = 1;
  #inLast = 0;
  readonly #all: Bin = emptyBin(Infinity, null);

  add(result: TrendResult): void {
    addTo(this.#all, result);
    addTo(this.#timeBin(result.finished_at), result);
    addTo(this.#versionBin(result.version ?? '', result.finished_at), result);
  }

  /** Adds what another trend has counted. Its versions stand behind those that are known. */
  merge(other: Trend): void {
    join(this.#all, other.#all);
    while (this.#widthMs < other.#widthMs) this.#widen();
    for (const bin of other.#times.values()) join(this.#timeBin(bin.from), bin);
    for (const bin of other.#versions) {
      const own = this.#versionBin(bin.version ?? '', bin.from);
      join(own, bin);
      own.until = bin.until ?? own.until;
    }
  }

  points(): Omit<PageTrends['series'][number], 'run_id'> {
    const times = [...this.#times].toSorted(([a], [b]) => a - b).map(([, bin]) => bin);
    return {
      all: pointOf(this.#all),
      times: evened(times, this.#all.sums.total / TIME_POINTS).map(pointOf),
      versions: this.#versions.map(pointOf),
    };
  }

  #timeBin(at: number): Bin {
    for (;;) {
      const slot = Math.floor(at / this.#widthMs);
      const known = this.#times.get(slot);
      if (known) return known;
      if (this.#times.size < MOST_BINS) {
        const bin = emptyBin(at, null);
        this.#times.set(slot, bin);
        return bin;
      }
      this.#widen();
    }
  }

  #widen(): void {
    this.#widthMs *= 2;
    const wider = new Map<number, Bin>();
    for (const bin of this.#times.values()) {
      const slot = Math.floor(bin.from / this.#widthMs);
      const known = wider.get(slot);
      if (known) join(known, bin);
      else wider.set(slot, bin);
    }
    this.#times = wider;
  }

  #versionBin(name: string, at: number): Bin {
    const known = this.#byName.get(name);
    if (known) return known;
    const last = this.#versions.at(-1);
    if (last && this.#inLast < this.#stride) {
      this.#inLast += 1;
      last.until = name;
      return this.#remember(name, last);
    }
    if (this.#versions.length >= MOST_BINS) {
      this.#halve();
      return this.#versionBin(name, at);
    }
    this.#inLast = 1;
    const bin = emptyBin(at, name);
    this.#versions.push(bin);
    return this.#remember(name, bin);
  }

  #remember(name: string, bin: Bin): Bin {
    this.#byName.set(name, bin);
    if (this.#byName.size > MOST_NAMES) {
      const [oldest] = this.#byName.keys();
      if (oldest !== undefined) this.#byName.delete(oldest);
    }
    return bin;
  }

  /** Neighbours become one. */
  #halve(): void {
    const into = new Map<Bin, Bin>();
    const fewer: Bin[] = [];
    for (const [at, bin] of this.#versions.entries()) {
      const before = fewer.at(-1);
      if (at % 2 === 0 || !before) fewer.push(bin);
      else {
        join(before, bin);
        before.until = bin.until ?? bin.version;
        into.set(bin, before);
      }
    }
    this.#inLast += this.#versions.length % 2 === 0 ? this.#stride : 0;
    this.#stride *= 2;
    this.#versions = fewer;
    for (const [name, bin] of this.#byName) this.#byName.set(name, into.get(bin) ?? bin);
  }
}

/** Neighbours joined until each has at least so many results: a share of one or two results says nothing. */
function evened(bins: readonly Bin[], least: number): Bin[] {
  const joined: Bin[] = [];
  for (const bin of bins) {
    const last = joined.at(-1);
    if (last && last.sums.total < least) join(last, bin);
    else joined.push({ ...bin, sums: { ...bin.sums } });
  }
  return joined;
}

const emptyBin = (at: number, version: string | null): Bin => ({
  from: at,
  to: at === Infinity ? -Infinity : at,
  version,
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
