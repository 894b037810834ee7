/** The input of an export format: one rollout with its provenance. */
import { type ArtifactContent, isTruncated, successOf } from '@swefarm/shared';
import type { BranchReward } from '../output/branches.ts';
import type { OutputLine } from '../output/line.ts';

/** Fields of an instance in an export. Tests and gold patch are omitted, because they reveal the solution. */
export type InstanceFields = {
  instance_id: string;
  /** Id that the agent sees if `instance_id` reveals the solution; otherwise null. */
  shown_id: string | null;
  repo: string | null;
  base_commit: string | null;
  version: string | null;
  problem_statement: string | null;
  licence: string | null;
};

/** Source of an exported rollout. Formats that allow extra fields store it as `swefarm`. */
export type Provenance = ReturnType<typeof provenanceOf>;

export type ExportedRollout = {
  line: OutputLine;
  /** Content of the artifact; null when the line has no artifact. */
  content: ArtifactContent | null;
  patch: string | null;
  /** Number of the rollout among the exported rollouts of its instance, from 0. */
  sample: number;
  instance: InstanceFields | null;
  provenance: Provenance;
};

export type RolloutParts = Omit<ExportedRollout, 'provenance' | 'patch'> & {
  /** Model of the run record, used when the trajectory names no model. */
  model: string | null;
  exportedBy: string;
  /** Rewards of the branches that the export has read. */
  branches?: readonly BranchReward[];
};

export function exportedRollout(parts: RolloutParts): ExportedRollout {
  const { line, content, sample, instance } = parts;
  const patch = line.patch ?? content?.patch ?? null;
  return { line, content, sample, instance, provenance: provenanceOf(parts), patch };
}

const provenanceOf = ({ line, content, instance, model, exportedBy, branches = [] }: RolloutParts) => ({
  instance_id: line.instance_id,
  run_id: line.run_id,
  rollout_id: line.rollout_id,
  /** Model of the policy; for an imported rollout, the model that the file names. */
  model: content?.trajectory?.model ?? line.imported?.model ?? model,
  /** Agent that came as a program, as `NAME VERSION`; null: an agent of the farm. `lines`: number of its lines. */
  agent: line.agent ? `${line.agent.name} ${line.agent.version}` : null,
  lines: line.agent?.lines ?? 1,
  policy_version: line.policy_version,
  tag: line.tag ?? null,
  licence: instance?.licence ?? line.imported?.licence ?? null,
  resolved: line.resolved,
  /** Whether the rollout was resolved and rewarded; a forged verdict is not rewarded. Formats write this value as `resolved`. */
  success: successOf(line),
  reward: line.reward,
  exit_status: line.exit_status,
  /** Whether a token limit cut the rollout (docs/training-data.md#overlong-rollouts). */
  truncated: isTruncated(line),
  trust: line.report?.trust.level ?? line.facts?.trust ?? null,
  /** The rollout that this one continues, and the last shared turn; null: the rollout is not a branch. */
  branch_of: line.branch_of ?? null,
  /** Mean rewards of the rollouts that continue this one, by the last shared turn. */
  branch_rewards: [...branches],
  /** Version of swefarm that made the rollout. `exported_by` is the version that exported the rollout. */
  software_version: content?.software_version ?? null,
  exported_by: exportedBy,
  /** Source of an imported rollout; null: the farm made the rollout. */
  imported: line.imported ?? null,
});

export const modelName = ({ provenance }: ExportedRollout): string => provenance.model ?? 'unknown';

/** Returns the patch as a prediction of the SWE-bench harness, SWE-agent and mini-swe-agent. */
export const predictionOf = (rollout: ExportedRollout) => ({
  instance_id: rollout.line.instance_id,
  model_name_or_path: modelName(rollout),
  model_patch: rollout.patch ?? '',
});

/** Returns name and version of the agent in a rollout. */
export const agentOf = ({
  line: { agent },
  provenance,
}: ExportedRollout): { name: string; version: string } =>
  agent ?? { name: 'swefarm', version: provenance.software_version ?? 'unknown' };
