/** Builds the files of a rollout in the folder tree of the SWE-bench harness. */
import { isSmith, officialReport } from '@swefarm/grading';
import type { ArtifactContent, InstancePlan, Result } from '@swefarm/shared';
import type { Prediction } from './predictions.ts';
import { FILES, type Files } from './tree.ts';

export type Evaluated = {
  result: Result;
  /** Parts of the artifact; null: the evaluation did not begin, so no artifact exists. */
  content: Pick<ArtifactContent, 'report' | 'test_log' | 'eval_script'> | null;
  prediction: Prediction;
  folder: string;
  /** Evaluation plan; null: the row cannot be evaluated. */
  plan: Pick<InstancePlan, 'apply'> | null;
  timeoutSeconds: number;
};

export function filesOf(evaluated: Evaluated): Files {
  const { content, prediction, timeoutSeconds } = evaluated;
  const report = content?.report ?? null;
  const ran = report !== null && report.evaluation !== 'not_run';
  const late = report?.evaluation === 'timed_out' ? lateText(report.grader, timeoutSeconds) : '';
  const testOutput = ran ? `${content?.test_log ?? ''}${late}` : null;
  const official =
    report &&
    officialReport(report, { log: testOutput, model: prediction.model_name_or_path, timeoutSeconds });
  return {
    patch: prediction.model_patch ?? '',
    script: ran ? (content?.eval_script ?? null) : null,
    testOutput,
    report: official,
    log: logOf(evaluated, official),
  };
}

/** Returns the text that the harness appends to the output of tests that timed out. */
const lateText = (grader: string, seconds: number): string =>
  isSmith(grader)
    ? `\n\n>>>>> Tests Timed Out: ${seconds} seconds exceeded`
    : `\n\nTimeout error: ${seconds} seconds exceeded.`;

/** Returns `run_instance.log`: the lines and time stamps that the harness would write for the steps that ran. */
function logOf(evaluated: Evaluated, official: Record<string, unknown> | null): string {
  const { result, folder } = evaluated;
  const { instance_id: id, failure, finished_at: end } = result;
  const start = end - result.seconds.total * 1000;
  const begun = [
    `Creating container for ${id}...`,
    `Container for ${id} is made by ${result.runtime} on ${result.node}`,
    `Intermediate patch for ${id} written to ${folder}/${FILES.patch}, now applying to container...`,
    ...applied(evaluated),
  ];
  const lines = [
    ...begun.map((text) => logLine(start, text)),
    ...graded(evaluated, official).map((text) => logLine(end, text)),
  ];
  if (failure) {
    const why = `${failure.stage}/${failure.class} after ${failure.attempts} attempts: ${failure.message}`;
    lines.push(logLine(end, `Error in evaluating model for ${id}: ${why}`, 'ERROR'));
  }
  return lines.join('');
}

/** Formats a line with its time as Python's logging does, in UTC. */
function logLine(at: number, text: string, level = 'INFO'): string {
  const stamp = new Date(at).toISOString().replace('T', ' ').replace('.', ',').replace('Z', '');
  return `${stamp} - ${level} - ${text}\n`;
}

const notApplied = (names: readonly string[]): string[] =>
  names.map((name) => `Failed to apply patch to container: ${name}`);

const namesOf = (plan: Evaluated['plan']): string[] => plan?.apply.map(({ name }) => name) ?? [];

function applied({ content, plan }: Evaluated): string[] {
  const report = content?.report;
  if (!report || report.patch_state === 'none') return [];
  if (report.patch_state === 'too_large')
    return ['>>>>> Patch Apply Failed:\nthe patch is over 10 MB and was not tried'];
  const names = namesOf(plan);
  const winner = report.applied_with === null ? -1 : names.indexOf(report.applied_with);
  const failed = notApplied(winner < 0 ? names : names.slice(0, winner));
  if (report.patch_state !== 'not_applied')
    return [...failed, `>>>>> Applied Patch:\n${report.applied_with ?? 'there is none'}`];
  // The log has the output of the commands that apply the patch, if no command succeeded.
  const output = report.evaluation === 'not_run' ? (content?.test_log ?? '') : '';
  return [...failed, `>>>>> Patch Apply Failed:\n${output}`];
}

function graded(
  { result, content, folder, timeoutSeconds }: Evaluated,
  official: Record<string, unknown> | null,
): string[] {
  const report = content?.report;
  if (!report || report.evaluation === 'not_run') return [];
  const id = result.instance_id;
  const steps = [
    `Eval script for ${id} written to ${folder}/${FILES.script}; copying to container...`,
    `Test runtime: ${(result.seconds.tests ?? result.seconds.evaluation).toFixed(2)} seconds`,
    `Test output for ${id} written to ${folder}/${FILES.testOutput}`,
  ];
  if (report.evaluation === 'timed_out')
    return [...steps, `${id}: Test timed out after ${timeoutSeconds} seconds.`];
  steps.push(`Grading answer for ${id}...`);
  const resolved = report.resolved === true ? 'True' : 'False';
  if (official) steps.push(`report: ${JSON.stringify(official)}\nResult for ${id}: resolved: ${resolved}`);
  return steps;
}

/** Returns the files for a patch of white space, which no command can apply. */
export function blankFiles(prediction: Prediction, plan: Evaluated['plan']): Files {
  const steps = [...notApplied(namesOf(plan)), '>>>>> Patch Apply Failed:\nthe patch is blank'];
  const log = steps.map((text) => logLine(Date.now(), text)).join('');
  return { patch: prediction.model_patch ?? '', script: null, testOutput: null, report: null, log };
}
