/** Makes the contents of the harnesses' report files. */
import type { Report } from '@swefarm/shared';
import { guessInfra, type InfraGuess } from './infra.ts';

type OfficialContext = {
  /** Test log, which swebench 5.0.2 searches for signs of broken infrastructure. */
  log: string | null;
  /** Name of the model, which SWE-smith writes into each report. */
  model: string;
  timeoutSeconds: number;
};

/** Whether the report files have the format of SWE-smith's harness. */
export const isSmith = (grader: string): boolean => /^swesmith(?:-|$)/.test(grader);

/**
 * Returns the content of an instance's report.json. Returns null if the harness writes no such file: the patch is empty, too large or not
 * applied, the tests timed out (except in SWE-smith), or the harness raises an exception. The run report then counts the instance as empty
 * or as an error.
 */
export function officialReport(report: Report, context: OfficialContext): Record<string, unknown> | null {
  const smith = isSmith(report.grader);
  if (report.evaluation === 'timed_out') {
    return smith ? { timed_out: true, timeout: context.timeoutSeconds } : null;
  }
  if (report.evaluation === 'not_run' && report.patch_state !== 'none') return null;
  if (report.unreadable === 'raises') return null;
  const exists = report.patch_state !== 'none';
  const found = exists && report.tests_status !== null;
  const verdict = { resolved: found && report.resolved === true };
  const tests = found ? { tests_status: report.tests_status } : {};
  if (smith) return { patch_exists: exists, ...verdict, ...tests, model_name_or_path: context.model };
  const isNone = report.grader === 'swegym' && !exists;
  return {
    [report.instance_id]: {
      patch_is_None: !exists && !isNone,
      patch_exists: exists,
      patch_successfully_applied: found,
      ...verdict,
      ...(report.grader === 'swebench-5.0.2' ? infraFields(exists && !found ? context.log : null) : {}),
      ...(isNone ? { none: true } : {}),
      ...tests,
    },
  };
}

function infraFields(unreadableLog: string | null): Record<string, unknown> {
  const guess = unreadableLog === null ? null : guessInfra(unreadableLog);
  if (!guess) return { infra_failure: false };
  return { infra_failure: guess.tier === 'environment', infra_failure_reason: guess.reason };
}

/** The outcome of one dataset row in a run. */
export type RunEntry = {
  instance_id: string;
  prediction: 'missing' | 'empty' | 'patch';
  /** `resolved` in the report.json of the row; null if there is no report.json. */
  resolved: boolean | null;
  /** Guessed cause of an unresolved row; only for swebench 5.0.2. */
  guess?: InfraGuess | null;
};

/**
 * Returns the run report `<model>.<run_id>.json`, schema_version 2. `predicted` contains the ids of all predictions, also for rows outside
 * of the dataset. `options.engine`: whether the harness has a container engine.
 */
export function runReport(
  entries: readonly RunEntry[],
  predicted: readonly string[],
  grader: string,
  options: { engine?: boolean } = {},
): Record<string, unknown> {
  const ids = (isCounted: (entry: RunEntry) => boolean): string[] =>
    entries
      .filter(isCounted)
      .map((entry) => entry.instance_id)
      .sort();
  const patched = (entry: RunEntry): boolean => entry.prediction === 'patch';
  const open = (entry: RunEntry): boolean => patched(entry) && entry.resolved !== true;
  const guessed = (tier: InfraGuess['tier']) => ids((entry) => open(entry) && entry.guess?.tier === tier);
  const latest = grader === 'swebench-5.0.2';
  const completed = ids((entry) => patched(entry) && entry.resolved !== null);
  const resolved = ids((entry) => patched(entry) && entry.resolved === true);
  const unresolved = ids((entry) => patched(entry) && entry.resolved === false);
  const empty = ids((entry) => entry.prediction === 'empty');
  const errors = ids((entry) => patched(entry) && entry.resolved === null);
  const [infra, ambiguous] = [guessed('environment'), guessed('ambiguous')];
  const reasons = entries.filter((entry) => open(entry) && entry.guess).sort(byId);
  return {
    total_instances: entries.length,
    submitted_instances: predicted.length,
    completed_instances: completed.length,
    resolved_instances: resolved.length,
    unresolved_instances: unresolved.length,
    ...(latest
      ? { infra_failure_instances: infra.length, ambiguous_failure_instances: ambiguous.length }
      : {}),
    empty_patch_instances: empty.length,
    error_instances: errors.length,
    completed_ids: completed,
    incomplete_ids: ids((entry) => entry.prediction === 'missing'),
    empty_patch_ids: empty,
    submitted_ids: [...predicted].sort(),
    resolved_ids: resolved,
    unresolved_ids: unresolved,
    ...(latest
      ? {
          infra_failure_ids: infra,
          ambiguous_failure_ids: ambiguous,
          failure_reasons: Object.fromEntries(
            reasons.map((entry) => [entry.instance_id, entry.guess?.reason]),
          ),
        }
      : {}),
    error_ids: errors,
    schema_version: 2,
    // These fields list what a container engine left. swebench 4.1.0 writes them without an engine, 5.0.2 with an engine.
    ...(latest !== (options.engine ?? false)
      ? {}
      : { unstopped_instances: 0, unstopped_containers: [], unremoved_images: [] }),
  };
}

/** Returns the `report.json` of a run by SWE-smith's harness (swesmith 0.0.9), where an instance without a verdict is unresolved. */
export function smithRunReport(entries: readonly RunEntry[]): Record<string, unknown> {
  const submitted = entries.filter(({ prediction }) => prediction !== 'missing').sort(byId);
  const ids = (resolved: boolean): string[] =>
    submitted.filter((entry) => (entry.resolved === true) === resolved).map((entry) => entry.instance_id);
  const [ids_resolved, ids_unresolved] = [ids(true), ids(false)];
  return {
    resolved: ids_resolved.length,
    unresolved: ids_unresolved.length,
    total: submitted.length,
    ids_resolved,
    ids_unresolved,
  };
}

const byId = (a: RunEntry, b: RunEntry): number => (a.instance_id < b.instance_id ? -1 : 1);
