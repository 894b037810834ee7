/** Builds a line of an output file: the flat facts of a result, its patch, and a summary of its report. */
import { jsonText, type Report, type Result, type Sampling } from '@swefarm/shared';

/** Facts that a collection adds to its rollouts; the farm does not store them. */
export type CollectionMark = {
  /** Name of the collection's set (`--set`). */
  tag?: string;
  /** Cost in US dollars, by the price of the model (`--prices`). */
  cost?: number;
  /** Id of the rollout in an earlier output that this rollout replaces (`--again`). */
  replaces?: string;
};

/** Parts of a line that come from the artifact or the collection instead of the result. */
export type LineParts = {
  mark?: CollectionMark | undefined;
  patch: string | null;
  report: Report | null;
  /** Sampling of the policy; null without a policy, or when unknown. */
  sampling?: Sampling | null;
  /** Path of the artifact's copy, made for `--artifacts`. */
  artifact_file?: string | undefined;
};

/** Fields of a line that come from the result. The four lists are in the order of the line. */
const FIRST_FIELDS = ['run_id', 'instance_id', 'family'] as const;
const VERDICT_FIELDS = [
  'rollout_id',
  'rollout_index',
  'outcome',
  'resolved',
  'reward',
  'reward_components',
  'reward_parts',
  'reward_row',
  'turns',
  'exit_status',
  'submits',
  'variant',
  'agent',
  'branch_of',
  'dry_run',
  'replay',
  'failure',
  'facts',
  'graded_by',
] as const;
const COST_FIELDS = [
  'seconds',
  'tokens',
  'policy_version',
  'policy_version_first',
  'policy_version_last',
] as const;
const LAST_FIELDS = ['attempt', 'worker', 'node', 'runtime', 'reward_table', 'finished_at'] as const;
type ResultField = (
  | typeof FIRST_FIELDS
  | typeof VERDICT_FIELDS
  | typeof COST_FIELDS
  | typeof LAST_FIELDS
)[number];

/** Fields on which readers of output files may rely. */
export type OutputLine = Pick<Result, ResultField | 'artifact'> &
  CollectionMark & {
    patch: string | null;
    report: ReportSummary | null;
    sampling?: Sampling;
    artifact_file?: string;
    /** Rollout of a later run that evaluated this rollout's patch again. */
    evaluated_by?: Pick<Result, 'rollout_id' | 'artifact'>;
    /** Score that `swefarm select` writes. */
    verifier_score?: number;
    /** Source that `swefarm import` writes. */
    imported?: Imported;
  };

export type Imported = {
  format: string;
  file: string;
  model: string | null;
  licence: string | null;
  /** Provenance that swefarm wrote into the file; absent: another program wrote the file. */
  origin?: Record<string, unknown>;
};

export type LineSummary = Omit<OutputLine, 'patch' | 'report' | 'facts' | 'sampling'>;

export function lineSummaryOf(line: OutputLine): LineSummary {
  const { patch: _patch, report: _report, facts: _facts, sampling: _sampling, ...tally } = line;
  return tally;
}

export type ReportSummary = ReturnType<typeof summariseReport>;

export function outputLine(result: Result, parts: LineParts): OutputLine {
  return {
    ...pick(result, FIRST_FIELDS),
    ...parts.mark,
    ...pick(result, VERDICT_FIELDS),
    patch: parts.patch,
    report: parts.report && summariseReport(parts.report),
    ...pick(result, COST_FIELDS),
    ...(parts.sampling ? { sampling: parts.sampling } : {}),
    artifact: result.artifact,
    ...(parts.artifact_file === undefined ? {} : { artifact_file: parts.artifact_file }),
    ...pick(result, LAST_FIELDS),
  };
}

/** Returns the existing fields of `keys` in the order of `keys`. */
const pick = <R extends object, K extends keyof R>(record: R, keys: readonly K[]): Pick<R, K> =>
  Object.fromEntries(keys.flatMap((key) => (record[key] === undefined ? [] : [[key, record[key]]]))) as Pick<
    R,
    K
  >;

export function summariseReport(report: Report) {
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

/** Returns the line as JSON. The reward has a decimal point (`1.0`), because readers would infer an integer column from `1`. */
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
