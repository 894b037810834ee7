/** One line of an output file: the flat facts of a result, its patch, and a summary of its report. */
import { jsonText, type Report, type Result, type Sampling } from '@swefarm/shared';

/** Facts that a collection adds to its rollouts; the farm does not store them. */
export type CollectionMark = {
  /** The name of its `--set`. */
  tag?: string;
  /** US dollars, by the price of its model (`--prices`). */
  cost?: number;
  /** The rollout of an earlier output that it replaces (`--again`). */
  replaces?: string;
};

/** Fields that come from the artifact instead of the result. */
export type LineParts = {
  mark?: CollectionMark | undefined;
  patch: string | null;
  report: Report | null;
  /** Sampling of its policy; null without a policy, or when unknown. */
  sampling?: Sampling | null;
  /** Path of the copy made for `--artifacts`. */
  artifact_file?: string | undefined;
};

/** The fields that readers of output files may rely on. */
export type OutputLine = Pick<
  Result,
  | 'run_id'
  | 'instance_id'
  | 'family'
  | 'rollout_id'
  | 'rollout_index'
  | 'outcome'
  | 'resolved'
  | 'reward'
  | 'reward_components'
  | 'reward_row'
  | 'reward_table'
  | 'turns'
  | 'exit_status'
  | 'failure'
  | 'facts'
  | 'artifact'
  | 'seconds'
  | 'tokens'
  | 'policy_version'
  | 'policy_version_first'
  | 'policy_version_last'
  | 'attempt'
  | 'worker'
  | 'node'
  | 'runtime'
  | 'finished_at'
> &
  CollectionMark & {
    patch: string | null;
    report: ReportSummary | null;
    sampling?: Sampling;
    artifact_file?: string;
    /** The rollout of a later run that evaluated this rollout's patch again. */
    evaluated_by?: Pick<Result, 'rollout_id' | 'artifact'>;
    /** Set by `swefarm select`. */
    verifier_score?: number;
    /** Set by `swefarm import`. */
    imported?: Imported;
  };

/** Where an imported rollout comes from. */
export type Imported = {
  format: string;
  file: string;
  model: string | null;
  licence: string | null;
  /** The provenance that swefarm wrote into the file; absent: another program wrote the file. */
  origin?: Record<string, unknown>;
};

/** A line without its long fields. */
export type LineSummary = Omit<OutputLine, 'patch' | 'report' | 'facts' | 'sampling'>;

export function lineSummaryOf(line: OutputLine): LineSummary {
  const { patch: _patch, report: _report, facts: _facts, sampling: _sampling, ...tally } = line;
  return tally;
}

export type ReportSummary = Pick<
  Report,
  | 'patch_state'
  | 'applied_with'
  | 'evaluation'
  | 'resolved'
  | 'score'
  | 'test_exit_code'
  | 'grader'
  | 'parser'
  | 'trust'
> & {
  /** Numbers of tests. */
  fail_to_pass: { success: number; failure: number } | null;
  pass_to_pass: { success: number; failure: number } | null;
};

export function outputLine(result: Result, parts: LineParts): OutputLine {
  return {
    run_id: result.run_id,
    instance_id: result.instance_id,
    ...(result.family === undefined ? {} : { family: result.family }),
    ...parts.mark,
    rollout_id: result.rollout_id,
    rollout_index: result.rollout_index,
    outcome: result.outcome,
    resolved: result.resolved,
    reward: result.reward,
    ...(result.reward_components ? { reward_components: result.reward_components } : {}),
    reward_row: result.reward_row,
    turns: result.turns,
    exit_status: result.exit_status,
    failure: result.failure,
    facts: result.facts,
    patch: parts.patch,
    report: parts.report && summariseReport(parts.report),
    seconds: result.seconds,
    tokens: result.tokens,
    policy_version: result.policy_version,
    ...(result.policy_version_first === undefined
      ? {}
      : {
          policy_version_first: result.policy_version_first,
          policy_version_last: result.policy_version_last,
        }),
    ...(parts.sampling ? { sampling: parts.sampling } : {}),
    artifact: result.artifact,
    ...(parts.artifact_file === undefined ? {} : { artifact_file: parts.artifact_file }),
    attempt: result.attempt,
    worker: result.worker,
    node: result.node,
    runtime: result.runtime,
    reward_table: result.reward_table,
    finished_at: result.finished_at,
  };
}

export function summariseReport(report: Report): ReportSummary {
  const count = (category: 'FAIL_TO_PASS' | 'PASS_TO_PASS') => {
    const bucket = report.tests_status?.[category];
    return bucket ? { success: bucket.success.length, failure: bucket.failure.length } : null;
  };
  return {
    patch_state: report.patch_state,
    applied_with: report.applied_with,
    evaluation: report.evaluation,
    resolved: report.resolved,
    ...(report.score == null ? {} : { score: report.score }),
    fail_to_pass: count('FAIL_TO_PASS'),
    pass_to_pass: count('PASS_TO_PASS'),
    test_exit_code: report.test_exit_code,
    grader: report.grader,
    parser: report.parser,
    trust: report.trust,
  };
}

/** The line as JSON, its reward with a decimal point (`1.0`): readers that infer column types would make whole numbers an integer column. */
export function encodeLine(line: OutputLine): string {
  const fields = Object.entries(line).map(([key, value]) => {
    const text = key === 'reward' ? decimal(value as number | null) : jsonText(value);
    return `${jsonText(key)}:${text}`;
  });
  return `{${fields.join(',')}}`;
}

function decimal(value: number | null): string {
  if (value === null) return 'null';
  return Number.isInteger(value) ? value.toFixed(1) : jsonText(value);
}
