/** Writes `run_instance.log`: the lines and time stamps that the SWE-bench harness would write for the steps that ran. */
import type { InstancePlan, Report, Result } from '@swefarm/shared';
import { FILES } from './tree.ts';

export type RunLog = {
  result: Pick<Result, 'instance_id' | 'failure' | 'seconds' | 'finished_at' | 'node' | 'runtime'>;
  report: Report | null;
  plan: Pick<InstancePlan, 'apply'>;
  folder: string;
  /** Output of the commands that apply the patch, if no command succeeded. */
  applyOutput: string | null;
  official: Record<string, unknown> | null;
  timeoutSeconds: number;
};

export function runLog(log: RunLog): string {
  const { result, folder } = log;
  const id = result.instance_id;
  const end = new Date(result.finished_at);
  const start = new Date(result.finished_at - result.seconds.total * 1000);
  const line = (at: Date, level: string, text: string): string => `${stamp(at)} - ${level} - ${text}\n`;
  const steps = [
    line(start, 'INFO', `Creating container for ${id}...`),
    line(start, 'INFO', `Container for ${id} is made by ${result.runtime} on ${result.node}`),
    line(
      start,
      'INFO',
      `Intermediate patch for ${id} written to ${folder}/${FILES.patch}, now applying to container...`,
    ),
    ...applied(log).map((text) => line(start, 'INFO', text)),
    ...evaluated(log).map((text) => line(end, 'INFO', text)),
  ];
  if (result.failure) {
    const { stage, class: cause, message, attempts } = result.failure;
    steps.push(
      line(
        end,
        'ERROR',
        `Error in evaluating model for ${id}: ${stage}/${cause} after ${attempts} attempts: ${message}`,
      ),
    );
  }
  return steps.join('');
}

function applied({ report, plan, applyOutput }: RunLog): string[] {
  if (!report || report.patch_state === 'none') return [];
  if (report.patch_state === 'too_large')
    return ['>>>>> Patch Apply Failed:\nthe patch is over 10 MB and was not tried'];
  const names = plan.apply.map(({ name }) => name);
  const winner = report.applied_with === null ? names.length : names.indexOf(report.applied_with);
  const failed = names
    .slice(0, winner < 0 ? names.length : winner)
    .map((name) => `Failed to apply patch to container: ${name}`);
  if (report.patch_state === 'not_applied')
    return [...failed, `>>>>> Patch Apply Failed:\n${applyOutput ?? ''}`];
  return [...failed, `>>>>> Applied Patch:\n${report.applied_with ?? 'there is none'}`];
}

function evaluated(log: RunLog): string[] {
  const { result, report, folder, official } = log;
  if (!report || report.evaluation === 'not_run') return [];
  const id = result.instance_id;
  const steps = [
    `Eval script for ${id} written to ${folder}/${FILES.script}; copying to container...`,
    `Test runtime: ${(result.seconds.tests ?? result.seconds.evaluation).toFixed(2)} seconds`,
    `Test output for ${id} written to ${folder}/${FILES.testOutput}`,
  ];
  if (report.evaluation === 'timed_out')
    return [...steps, `${id}: Test timed out after ${log.timeoutSeconds} seconds.`];
  const verdict = official
    ? [`report: ${JSON.stringify(official)}\nResult for ${id}: resolved: ${python(report.resolved)}`]
    : [];
  return [...steps, `Grading answer for ${id}...`, ...verdict];
}

const python = (value: boolean | null): string => (value === true ? 'True' : 'False');

/** Formats a time as Python's logging does, in UTC. */
const stamp = (at: Date): string => at.toISOString().replace('T', ' ').replace('.', ',').replace('Z', '');
