/** Decides from the results which rollouts of a run are queued next, by `--until-resolved`, budgets and `--again`. */
import { parseRolloutId, rolloutId, successOf } from '@swefarm/shared';
import type { LineSummary } from '@swefarm/trajectories';

export type Budget = {
  tokens: number | null;
  /** Limit in US dollars. */
  cost: number | null;
  /** Limit on the time since the start of the command. */
  seconds: number | null;
};

export type FeedRules = {
  runId: string;
  /** Instances in the order in which they are queued. */
  instanceIds: readonly string[];
  /** Maximum number of rollouts of an instance. */
  perInstance: number;
  /** Number of resolved rollouts after which no more rollouts of an instance are queued; null: all rollouts run. */
  untilResolved: number | null;
  budget: Budget;
  /** Maximum number of rollouts queued or running, which bounds the excess over a budget; null: no limit. */
  inFlight: number | null;
  /** Rollout indices that may be queued, by instance id; null: all. */
  only: ReadonlyMap<string, ReadonlySet<number>> | null;
  costOf: (line: Pick<LineSummary, 'tokens'>) => number;
};

type Group = { queued: Set<number>; ended: number; resolved: number };

export class Feeder {
  readonly #rules: FeedRules;
  readonly #groups: Map<string, Group>;
  readonly #begun: number;
  readonly #now: () => number;
  #inFlight = 0;
  #tokens = 0;
  #cost = 0;
  #stopped: string | null = null;

  /** @param ended existing lines of the output. @param now milliseconds of a monotonic clock */
  constructor(rules: FeedRules, ended: Iterable<LineSummary>, now: () => number = () => performance.now()) {
    this.#rules = rules;
    this.#now = now;
    this.#begun = now();
    this.#groups = new Map(rules.instanceIds.map((id) => [id, { queued: new Set(), ended: 0, resolved: 0 }]));
    for (const line of ended) {
      const group = this.#groups.get(line.instance_id);
      if (!group) continue;
      group.queued.add(line.rollout_index);
      this.#inFlight += 1;
      this.note(line);
    }
  }

  /** Description of the exhausted budget; null: no budget is exhausted. */
  get stopped(): string | null {
    return this.#stopped;
  }

  /** Counts an ended rollout. */
  note(line: LineSummary): void {
    const group = this.#groups.get(line.instance_id);
    if (!group) return;
    this.#inFlight -= 1;
    group.ended += 1;
    if (successOf(line) === true) group.resolved += 1;
    this.#tokens += line.tokens.prompt + line.tokens.completion;
    this.#cost += this.#rules.costOf(line);
  }

  /** Returns the rollouts to queue, and counts them as queued. */
  next(): string[] {
    const { runId, inFlight } = this.#rules;
    const spent = this.#spent();
    const ids: string[] = [];
    for (const [instanceId, group] of this.#groups) {
      for (const index of this.#wanted(instanceId, group)) {
        if (spent !== null) {
          this.#stopped = spent;
          return ids;
        }
        if (inFlight !== null && this.#inFlight >= inFlight) return ids;
        group.queued.add(index);
        this.#inFlight += 1;
        ids.push(rolloutId(runId, instanceId, index));
      }
    }
    return ids;
  }

  #wanted(instanceId: string, group: Group): number[] {
    const { perInstance, untilResolved, only } = this.#rules;
    const all = only ? [...(only.get(instanceId) ?? [])] : Array.from({ length: perInstance }, (_, at) => at);
    const free = all.filter((index) => !group.queued.has(index));
    if (untilResolved === null) return free;
    // Each running rollout may resolve, so running rollouts count towards `untilResolved`.
    const running = group.queued.size - group.ended;
    return free.slice(0, Math.max(0, untilResolved - group.resolved - running));
  }

  #spent(): string | null {
    const { tokens, cost, seconds } = this.#rules.budget;
    if (tokens !== null && this.#tokens >= tokens) return `${this.#tokens} of ${tokens} tokens are spent`;
    if (cost !== null && this.#cost >= cost)
      return `${this.#cost.toFixed(2)} of ${cost} US dollars are spent`;
    const gone = (this.#now() - this.#begun) / 1000;
    return seconds !== null && gone >= seconds ? `${seconds} seconds are over` : null;
  }
}

/** Selects the rollouts that `takes` accepts. `only`: their indices by instance id. `replaces`: their ids by `INSTANCE.INDEX`. */
export function rolloutsAgain(
  lines: Iterable<LineSummary>,
  takes: (line: LineSummary) => boolean,
): { only: Map<string, Set<number>>; replaces: Map<string, string> } {
  const only = new Map<string, Set<number>>();
  const replaces = new Map<string, string>();
  for (const line of lines) {
    if (!takes(line)) continue;
    const { instanceId, index } = parseRolloutId(line.rollout_id);
    only.set(instanceId, (only.get(instanceId) ?? new Set()).add(index));
    replaces.set(`${instanceId}.${index}`, line.rollout_id);
  }
  return { only, replaces };
}

/** Sorts instances by mean seconds in an earlier output, longest first. Instances without a result count as the median. */
export function longestFirst<T extends { instance_id: string }>(
  instances: readonly T[],
  history: Iterable<Pick<LineSummary, 'instance_id' | 'seconds'>>,
): T[] {
  const sums = new Map<string, { seconds: number; count: number }>();
  for (const { instance_id: id, seconds } of history) {
    const own = sums.get(id) ?? { seconds: 0, count: 0 };
    sums.set(id, { seconds: own.seconds + seconds.total, count: own.count + 1 });
  }
  const means = new Map([...sums].map(([id, { seconds, count }]) => [id, seconds / count]));
  const known = instances.flatMap(({ instance_id: id }) => means.get(id) ?? []).toSorted((a, b) => a - b);
  const middle = known[Math.floor(known.length / 2)] ?? 0;
  const of = ({ instance_id: id }: T): number => means.get(id) ?? middle;
  return instances.toSorted((a, b) => of(b) - of(a));
}
