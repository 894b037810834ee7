/** Ends `swefarm eval`: writes the harness's report for each round, and prints flaky tests and a table. */
import { join } from 'node:path';
import type { Dataset } from '@swefarm/datasets';
import type { ProducerConfig } from '@swefarm/shared';
import type { Prediction } from '@swefarm/trajectories';
import { reportName, roundName, writeReportFile, writeRunReport } from '@swefarm/trajectories';
import type { EvalTask } from '../eval/evaltasks.ts';
import type { EvaluationRun } from '../eval/evaluationrun.ts';
import { findFlaky, renderFlaky } from '../eval/flaky.ts';
import type { GradingPlans } from '../eval/gradingplans.ts';
import { type EvaluationEnd, renderStatuses } from '../eval/statustable.ts';
import type { EvalInput } from './evalinput.ts';
import type { EvalValues } from './evaloptions.ts';
import type { StoredEvaluation } from './evaloutput.ts';
import { EXIT, type ExitCode } from './exit.ts';
import { printStatus, repeatCommand, widthOf } from './terminal.ts';

export type Evaluation = {
  o: EvalValues;
  config: ProducerConfig;
  logs: string;
  runId: string;
  dataset: Dataset;
  given: EvalInput;
  plans: GradingPlans;
  items: EvalTask[];
  /** Record of an earlier start; null: a new evaluation. */
  begun: StoredEvaluation | null;
  work: EvaluationRun | null;
  timeoutSeconds: number;
};

/** Writes the report of each round, prints the next step, and returns the exit code. */
export async function writeReports(
  evaluation: Evaluation,
  ended: Map<EvalTask, EvaluationEnd>,
  complete: boolean,
): Promise<ExitCode> {
  const { o, logs, runId, dataset, given, plans, items } = evaluation;
  const instanceIds = dataset.instances.map((instance) => instance.instance_id);
  const reportDir = o.reportDir;
  const reports: string[] = [];
  for (const round of given.rounds.keys()) {
    const predictions = given.all(round);
    if (predictions.length === 0) continue;
    const run = roundName(runId, round);
    reports.push(
      await writeRunReport({ logs, reportDir, run, instanceIds, predictions, grader: plans.grader }),
    );
  }
  printStatus(renderStatuses([...ended.values()], widthOf(process.stderr)));
  if (given.times > 1) for (const line of await flakyLines(evaluation, reportDir)) printStatus(line);
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

/** Statuses that a second evaluation would not change, although the harness counts some as errors. */
const JUDGED = new Set([
  'resolved',
  'unresolved',
  'scored',
  'empty_patch',
  'earlier',
  'patch_not_applied',
  'patch_too_large',
]);

async function flakyLines({ given, items, runId }: Evaluation, reportDir: string): Promise<string[]> {
  const flaky = await findFlaky(items);
  const path = join(reportDir, `${reportName(given.predictions as Prediction[], runId)}.flaky.json`);
  const content = { format: 'swefarm-flaky-1', run_id: runId, times: given.times, flaky };
  await writeReportFile(path, `${JSON.stringify(content, null, 2)}\n`);
  return [...renderFlaky(flaky, given.times), `flaky tests: ${path}`];
}
