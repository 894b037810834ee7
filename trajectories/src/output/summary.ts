/** Summarises a run from its output lines. */
import type { LineSummary } from './line.ts';
import { countNames, mean, meansOf, ratio, tally } from './tally.ts';

export type GroupSummary = ReturnType<typeof summariseGroup>;
export type Summary = ReturnType<typeof summarise>;

/** Summarises lines by instance, including instances without lines. */
export function summarise(instanceIds: Iterable<string>, lines: Iterable<LineSummary>) {
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
    /** A group for each instance: first the given ones in their order, then other instances of lines. */
    groups: Array.from(byGroup, ([id, group]) => summariseGroup(id, group)),
    all: summariseGroup('all', every),
    /** Message of one failure for each `stage/class`. */
    examples,
  };
}

const causeOf = (failure: NonNullable<LineSummary['failure']>): string => `${failure.stage}/${failure.class}`;

function summariseGroup(instanceId: string, lines: readonly LineSummary[]) {
  const sums = tally(lines);
  const { total, judged, failed, cancelled, resolved, scored } = sums;
  const { reward_mean, turns_mean } = meansOf(sums);
  const ends = lines.filter((line) => line.outcome === 'judged').map((line) => line.exit_status ?? 'none');
  return {
    instance_id: instanceId,
    rollouts: total,
    ...{ judged, failed, cancelled, resolved, scored, reward_mean, turns_mean },
    /** Mean turns of cancelled rollouts before their cancellation; null when none is cancelled. */
    cancelled_turns_mean: ratio(sums.cancelled_turns_sum, cancelled),
    exit_statuses: countNames(ends),
    failures: countNames(lines.flatMap((line) => (line.failure ? [causeOf(line.failure)] : []))),
    /** Mean seconds from claim to result; null without rollouts. */
    seconds_mean: mean(lines.map((line) => line.seconds.total)),
  };
}
