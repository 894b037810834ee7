/** Ends `swefarm eval`: writes the harness's report for each round, and prints statuses, flaky tests and the next step. */
import { join } from 'node:path';
import type { Dataset } from '@swefarm/datasets';
import type { ProducerConfig } from '@swefarm/shared';
import {
  countStatuses,
  type EvaluationStatus,
  GAP,
  renderTable,
  reportName,
  roundName,
  STATUS_MEANINGS,
  safeFirstLine,
  writeReportFile,
  writeRunReport,
} from '@swefarm/trajectories';
import type { EvalTask } from '../eval/evaltasks.ts';
import type { EvaluationRun } from '../eval/evaluationrun.ts';
import { findFlaky, renderFlaky } from '../eval/flaky.ts';
import type { GradingPlans } from '../eval/gradingplans.ts';
import type { EvalInput, EvalValues } from './evalinput.ts';
import { EXIT, type ExitCode } from './exit.ts';
import { printStatus, repeatCommand, widthOf } from './terminal.ts';

export type Evaluation = {
  o: EvalValues;
  config: ProducerConfig;
  runId: string;
  dataset: Dataset;
  given: EvalInput;
  plans: GradingPlans;
  items: EvalTask[];
  work: EvaluationRun | null;
  timeoutSeconds: number;
};

export type EvaluationEnd = { end: EvaluationStatus; message: string | null };
/** Statuses of the tasks that are not open. */
export type EvaluationEnds = Map<EvalTask, EvaluationEnd>;

/** Writes the report of each round, prints the next step, and returns the exit code. */
export async function writeReports(
  evaluation: Evaluation,
  ended: EvaluationEnds,
  complete: boolean,
): Promise<ExitCode> {
  const { o, runId, dataset, given, plans, items } = evaluation;
  const { logsDir: logs, reportDir } = o;
  const instanceIds = dataset.instances.map((instance) => instance.instance_id);
  const reports: string[] = [];
  for (const [round, predictions] of given.rounds.entries()) {
    if (predictions.length === 0) continue;
    const run = roundName(runId, round);
    reports.push(
      await writeRunReport({ logs, reportDir, run, instanceIds, predictions, grader: plans.grader }),
    );
  }
  printStatus(renderStatuses(ended, widthOf(process.stderr)));
  if ((o.nTimes ?? 1) > 1) for (const line of await flakyLines(evaluation)) printStatus(line);
  const open = items.filter((item) => !ended.has(item)).length;
  if (open > 0)
    printStatus(`${open} open; continue with: ${repeatCommand(process.argv.slice(2), ['--run-id', runId])}`);
  printStatus(`logs: ${join(logs, runId)}`);
  for (const path of reports) printStatus(`report: ${path}`);
  if (!complete) return EXIT.interrupted;
  const unjudged = [...ended.values()].some(({ end }) => !JUDGED.has(end));
  // After a complete evaluation, a task is open only if its result cannot be read.
  return unjudged || open > 0 || given.problems.length > 0 ? EXIT.someNotJudged : EXIT.allJudged;
}

const WITHOUT_DETAIL = ['resolved', 'unresolved', 'scored', 'earlier', 'empty_patch'];
/** Statuses that a second evaluation would not change, although the harness counts some as errors. */
const JUDGED = new Set([...WITHOUT_DETAIL, 'patch_not_applied', 'patch_too_large']);

async function flakyLines({ o, given, items, runId }: Evaluation): Promise<string[]> {
  const { nTimes: times = 1 } = o;
  const flaky = await findFlaky(items);
  const path = join(o.reportDir, `${reportName(given.rounds[0] ?? [], runId)}.flaky.json`);
  const content = { format: 'swefarm-flaky-1', run_id: runId, times, flaky };
  await writeReportFile(path, `${JSON.stringify(content, null, 2)}\n`);
  return [...renderFlaky(flaky, times), `flaky tests: ${path}`];
}

const SHOWN = 20;

function renderStatuses(ended: EvaluationEnds, width: number): string {
  const counts = countStatuses([...ended.values()].map(({ end }) => end));
  const names = Math.max(4, ...counts.map(([end]) => end.length)) + GAP;
  const rest = Math.max(20, Math.min(width, 140) - names - 'count'.length - GAP - 1);
  const table = renderTable(
    [
      { name: 'end', width: names },
      { name: 'count', width: 'count'.length + GAP, align: 'right' },
      { name: 'meaning', width: rest },
    ],
    counts.map(([end, count]) => [end, String(count), STATUS_MEANINGS[end] ?? '']),
  );
  const unjudged = [...ended].filter(([, { end }]) => !WITHOUT_DETAIL.includes(end));
  const lines = unjudged.slice(0, SHOWN).map(([{ prediction, round }, { end, message }]) => {
    const which = round === 0 ? '' : ` (evaluation ${round + 1})`;
    const detail = message === null ? '' : `: ${safeFirstLine(message)}`;
    return `${end}: ${prediction.instance_id}${which}${detail}`;
  });
  const more = unjudged.length > SHOWN ? [`… and ${unjudged.length - SHOWN} more`] : [];
  return [table, ...lines, ...more].join('\n');
}
