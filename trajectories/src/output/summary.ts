/** Summarises a run from its output lines. */
import type { LineSummary } from './line.ts';
import { countNames, mean, meansOf, ratio, tally } from './tally.ts';

export type GroupSummary = {
  instance_id: string;
  rollouts: number;
  judged: number;
  failed: number;
  cancelled: number;
  resolved: number;
  /** Number of rollouts judged by a score without a verdict. */
  scored: number;
  /** Mean over the rollouts with a reward; null when none has a reward. */
  reward_mean: number | null;
  turns_mean: number | null;
  /** Mean turns of cancelled rollouts before their cancellation; null when none is cancelled. */
  cancelled_turns_mean: number | null;
  exit_statuses: Record<string, number>;
  /** Number of failures by `stage/class`. */
  failures: Record<string, number>;
  /** Mean seconds from claim to result; null without rollouts. */
  seconds_mean: number | null;
};

export type Summary = {
  /** A group for each instance, in the given order. */
  groups: GroupSummary[];
  all: GroupSummary;
  /** Message of one failure for each `stage/class`. */
  examples: Record<string, string>;
};

/** Summarises lines by instance, including instances without lines. */
export function summarise(instanceIds: Iterable<string>, lines: Iterable<LineSummary>): Summary {
  const byGroup = new Map<string, LineSummary[]>(Array.from(instanceIds, (id) => [id, []]));
  const every: LineSummary[] = [];
  const examples: Record<string, string> = {};
  for (const line of lines) {
    const group = byGroup.get(line.instance_id);
    if (group) group.push(line);
    else byGroup.set(line.instance_id, [line]);
    every.push(line);
    if (line.failure) examples[causeOf(line.failure)] ??= line.failure.message;
  }
  return {
    groups: Array.from(byGroup, ([id, group]) => summariseGroup(id, group)),
    all: summariseGroup('all', every),
    examples,
  };
}

const causeOf = (failure: NonNullable<LineSummary['failure']>): string => `${failure.stage}/${failure.class}`;

function summariseGroup(instanceId: string, lines: readonly LineSummary[]): GroupSummary {
  const judged = lines.filter((line) => line.outcome === 'judged');
  const sums = tally(lines);
  const { reward_mean, turns_mean } = meansOf(sums);
  return {
    instance_id: instanceId,
    rollouts: sums.total,
    judged: sums.judged,
    failed: sums.failed,
    cancelled: sums.cancelled,
    resolved: sums.resolved,
    scored: sums.scored,
    reward_mean,
    turns_mean,
    cancelled_turns_mean: ratio(sums.cancelled_turns_sum, sums.cancelled),
    exit_statuses: countNames(judged.map((line) => line.exit_status ?? 'none')),
    failures: countNames(lines.flatMap((line) => (line.failure ? [causeOf(line.failure)] : []))),
    seconds_mean: mean(lines.map((line) => line.seconds.total)),
  };
}
