/** Prints a table of the run's results, the paths of files and how to continue. Decides the exit code. */
import { type RunRecord, startedGroup, type UnreadableResult } from '@swefarm/shared';
import { type GroupSummary, type Output, renderReward, summarise, withVerdict } from '@swefarm/trajectories';
import { renderForecastError } from '../view/forecast.ts';
import { renderSummary } from '../view/summary.ts';
import type { DrawnRun } from './drawnrun.ts';
import { EXIT, type ExitCode, exitCode } from './exit.ts';
import { printStatus, styled, widthOf } from './terminal.ts';

export type RunEnd = {
  record: Pick<RunRecord, 'run_id' | 'group_size' | 'oversample' | 'forecast' | 'created_at' | 'policy'>;
  instanceIds: readonly string[];
  output: Output;
  complete: boolean;
  unreadable: readonly UnreadableResult[];
  minGroup: number | undefined;
  /** Lines that name the files of the run. */
  outputLines: readonly string[];
  /** Number of queued rollouts and the exhausted budget, if rollouts are queued while results arrive. */
  queued?: { rollouts: number; stopped: string | null } | undefined;
  /** State of a run that draws its groups; null or absent: another run. */
  drawn?: DrawnRun | null;
  /** How to continue when the run is not complete. */
  resumeHint: string;
};

export function reportRunEnd(end: RunEnd): ExitCode {
  const summary = summarise(end.drawn?.instanceIds ?? end.instanceIds, end.output.lines.values());
  printStatus(renderSummary(summary, widthOf(process.stderr)));
  const off = end.complete ? renderForecastError(end.record, end.output.lines.values()) : null;
  const ends = [...(end.drawn ? [end.drawn.text] : []), ...(off ? [off] : [])];
  for (const line of [verdict(summary.all, end), ...ends, ...end.outputLines]) printStatus(line);
  if (!end.complete) printStatus(end.resumeHint);
  if (end.complete && end.drawn) return end.drawn.enough ? EXIT.allJudged : EXIT.someNotJudged;
  if (end.complete && end.queued) {
    if (end.queued.stopped)
      printStatus(`stopped: ${end.queued.stopped}; with a larger budget, ${end.resumeHint}`);
    const whole = end.queued.stopped === null && summary.all.judged >= end.queued.rollouts;
    return whole ? EXIT.allJudged : EXIT.someNotJudged;
  }
  return exitCode({
    judgedByGroup: new Map(summary.groups.map((group) => [group.instance_id, group.judged])),
    groupSize: end.record.group_size,
    minGroup: end.minGroup,
    complete: end.complete,
  });
}

function verdict(all: GroupSummary, end: RunEnd): string {
  const expected =
    end.drawn?.rollouts ?? end.queued?.rollouts ?? end.instanceIds.length * startedGroup(end.record);
  const rate = withVerdict(all) > 0 ? ` (${((100 * all.resolved) / withVerdict(all)).toFixed(1)} %)` : '';
  const scored = all.scored > 0 ? `, ${all.scored} scored, mean reward ${renderReward(all.reward_mean)}` : '';
  // A group that ends early cancels its longest rollouts.
  const { turns_mean: judged, cancelled_turns_mean: cancelled } = all;
  const turns =
    judged === null || cancelled === null
      ? ''
      : ` (mean turns: judged ${judged.toFixed(1)}, cancelled ${cancelled.toFixed(1)} so far)`;
  const parts = [
    `run ${end.record.run_id}: ${all.judged} of ${expected} rollouts judged, ${all.resolved} resolved${rate}${scored}`,
    ...(all.failed > 0 ? [styled('yellow', `${all.failed} failed, without a reward`, process.stderr)] : []),
    ...(all.cancelled > 0 ? [`${all.cancelled} cancelled${turns}`] : []),
    ...(end.unreadable.length > 0
      ? [styled('yellow', `${end.unreadable.length} with a result that cannot be read`, process.stderr)]
      : []),
    ...(end.complete ? [] : [`${expected - all.rollouts - end.unreadable.length} open`]),
  ];
  return parts.join(', ');
}
