/** The input of an export format: one rollout with its provenance. */
import { type ArtifactContent, successOf } from '@swefarm/shared';
import type { OutputLine } from '../output/line.ts';

/** The fields of a dataset's row in an export. Tests and gold patch are left out, because they answer the task. */
export type InstanceFields = {
  instance_id: string;
  repo: string | null;
  base_commit: string | null;
  version: string | null;
  problem_statement: string | null;
  licence: string | null;
};

/** The source of an exported rollout; formats that allow further fields have it as `swefarm`. */
export type Provenance = {
  instance_id: string;
  run_id: string;
  rollout_id: string;
  /** The model of the policy; of an imported rollout, as its file named it. */
  model: string | null;
  policy_version: string | null;
  tag: string | null;
  licence: string | null;
  /** The harness's own verdict. */
  resolved: boolean | null;
  /** Resolved and rewarded: false for a forged verdict. Formats write it as their `resolved`. */
  success: boolean | null;
  reward: number | null;
  exit_status: string | null;
  trust: string | null;
  /** Version that made the rollout; `exported_by`: version that exported it. */
  software_version: string | null;
  exported_by: string;
  /** Null: the farm made it. */
  imported: OutputLine['imported'] | null;
};

export type ExportedRollout = {
  line: OutputLine;
  /** Null when the line has no artifact. */
  content: ArtifactContent | null;
  patch: string | null;
  /** Number among the exported rollouts of its instance, from 0. */
  sample: number;
  instance: InstanceFields | null;
  provenance: Provenance;
};

export type RolloutParts = Omit<ExportedRollout, 'provenance' | 'patch'> & {
  /** The model of the run's record, where the trajectory names none. */
  model: string | null;
  exportedBy: string;
};

export function exportedRollout(parts: RolloutParts): ExportedRollout {
  const { line, content, sample, instance, exportedBy } = parts;
  const provenance: Provenance = {
    instance_id: line.instance_id,
    run_id: line.run_id,
    rollout_id: line.rollout_id,
    model: content?.trajectory?.model ?? line.imported?.model ?? parts.model,
    policy_version: line.policy_version,
    tag: line.tag ?? null,
    licence: instance?.licence ?? line.imported?.licence ?? null,
    resolved: line.resolved,
    success: successOf(line),
    reward: line.reward,
    exit_status: line.exit_status,
    trust: line.report?.trust.level ?? line.facts?.trust ?? null,
    software_version: content?.software_version ?? null,
    exported_by: exportedBy,
    imported: line.imported ?? null,
  };
  return { line, content, sample, instance, provenance, patch: line.patch ?? content?.patch ?? null };
}

export const modelName = ({ provenance }: ExportedRollout): string => provenance.model ?? 'unknown';
