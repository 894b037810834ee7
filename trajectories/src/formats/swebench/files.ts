/** Builds the files of a rollout in the folder tree of the SWE-bench harness. */
import { isSmith, officialReport } from '@swefarm/grading';
import type { ArtifactContent, InstancePlan, Result } from '@swefarm/shared';
import type { Prediction } from './predictions.ts';
import { runLog } from './runlog.ts';
import type { Files } from './tree.ts';

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

export function filesOf({ result, content, prediction, folder, plan, timeoutSeconds }: Evaluated): Files {
  const report = content?.report ?? null;
  const ran = report !== null && report.evaluation !== 'not_run';
  const log = content?.test_log ?? '';
  const late = report?.evaluation === 'timed_out' ? lateText(report.grader, timeoutSeconds) : '';
  const testOutput = ran ? `${log}${late}` : null;
  const official =
    report &&
    officialReport(report, { log: testOutput, model: prediction.model_name_or_path, timeoutSeconds });
  return {
    patch: prediction.model_patch ?? '',
    script: ran ? (content?.eval_script ?? null) : null,
    testOutput,
    report: official,
    log: runLog({
      result,
      report,
      plan: plan ?? { apply: [] },
      folder,
      applyOutput: report?.patch_state === 'not_applied' && !ran ? log : null,
      official,
      timeoutSeconds,
    }),
  };
}

/** Returns the text that the harness appends to the output of tests that timed out. */
const lateText = (grader: string, seconds: number): string =>
  isSmith(grader)
    ? `\n\n>>>>> Tests Timed Out: ${seconds} seconds exceeded`
    : `\n\nTimeout error: ${seconds} seconds exceeded.`;

/** Returns the files for a patch of white space, which no command can apply. */
export function blankFiles(prediction: Prediction, plan: Evaluated['plan']): Files {
  const at = new Date().toISOString().replace('T', ' ').replace('.', ',').replace('Z', '');
  const names = plan?.apply.map(({ name }) => `Failed to apply patch to container: ${name}`) ?? [];
  const failed = '>>>>> Patch Apply Failed:\nthe patch is blank';
  return {
    patch: prediction.model_patch ?? '',
    script: null,
    testOutput: null,
    report: null,
    log: [...names, failed].map((text) => `${at} - INFO - ${text}\n`).join(''),
  };
}
