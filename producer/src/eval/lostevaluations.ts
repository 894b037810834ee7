/** Finds the patches of failed or imported rollouts for a new evaluation, and adds verdict and reward to their lines. */
import type { RowProblem } from '@swefarm/datasets';
import { type RewardFacts, UsageError } from '@swefarm/shared';
import {
  type OutputLine,
  type Prediction,
  type RewardRule,
  resultRows,
  rewardFields,
  withReward,
} from '@swefarm/trajectories';

export type LostEvaluations = {
  /** Predictions by round. A round has at most one prediction for each instance. */
  rounds: Prediction[][];
  oldLines: ReadonlyMap<Prediction, OutputLine>;
  problems: RowProblem[];
};

/**
 * Reads the patches to evaluate again. `model`: name of the model in the harness's tree, unless an imported line names another model.
 *
 * @throws UsageError when the file has no rollout to evaluate again or cannot be read
 */
export async function readLostEvaluations(
  path: string,
  model: string,
  known: ReadonlySet<string>,
): Promise<LostEvaluations> {
  const rounds: Prediction[][] = [];
  const oldLines = new Map<Prediction, OutputLine>();
  const problems: RowProblem[] = [];
  const times = new Map<string, number>();
  for await (const row of resultRows(path)) {
    if ('problem' in row) {
      problems.push(row.problem);
      continue;
    }
    const line = row.value as OutputLine;
    if (!isLost(line)) continue;
    const { instance_id } = line;
    const bad = (field: string, expected: string, found: string, remedy: string) =>
      problems.push({ where: row.where, field, expected, found, remedy });
    if (!known.has(instance_id)) {
      bad('instance_id', 'an id that the dataset has', instance_id, 'name the dataset of the run');
      continue;
    }
    if (!line.facts) {
      bad('facts', 'the facts of a reward', 'none', 'the agent did not end: run the rollout again');
      continue;
    }
    const round = times.get(instance_id) ?? 0;
    times.set(instance_id, round + 1);
    const name = line.imported?.model ?? model;
    const prediction = { instance_id, model_name_or_path: name, model_patch: line.patch };
    oldLines.set(prediction, line);
    rounds[round] ??= [];
    rounds[round].push(prediction);
  }
  if (rounds.length === 0 && problems.length === 0) {
    throw new UsageError(
      `${path}: no rollout has a patch and an evaluation that failed; nothing is left to do`,
      { code: 'nothing_lost' },
    );
  }
  return { rounds, oldLines, problems };
}

/** Returns whether a line has a patch whose evaluation failed, or an imported patch that was never evaluated. */
const isLost = ({ outcome, failure, imported, report, patch }: Partial<OutputLine>): boolean =>
  ((outcome === 'failed' && failure?.stage !== 'policy') ||
    (outcome === 'judged' && imported !== undefined && !report)) &&
  typeof patch === 'string' &&
  patch !== '';

/** Returns the old line with the facts of the new evaluation and the reward for all facts; unchanged if the evaluation did not run. */
export function mergeEvaluation(old: OutputLine, fresh: OutputLine, rule: RewardRule): OutputLine {
  if (!old.facts || !fresh.facts || fresh.facts.evaluation === 'not_run') return old;
  const { patch_state, evaluation, resolved, trust, gold_healthy, gold_time_share, ungraded } = fresh.facts;
  const { score, reward_components, fail_to_pass, pass_to_pass } = fresh.facts;
  const facts: RewardFacts = {
    // Imported lines do not have these facts.
    ...{ turns: null, malformed_answers: null, sequence_tokens: null },
    ...old.facts,
    patch_state,
    evaluation,
    resolved,
    trust,
    gold_healthy,
    gold_time_share,
    ungraded,
    ...(fail_to_pass === undefined ? {} : { fail_to_pass }),
    ...(pass_to_pass === undefined ? {} : { pass_to_pass }),
    ...(score === undefined ? {} : { score }),
    ...(reward_components ? { reward_components } : {}),
  };
  return {
    ...withReward(old, rewardFields(facts, rule, old.failure?.attempts ?? 1)),
    reward_table: fresh.reward_table,
    facts,
    report: fresh.report,
    evaluated_by: { rollout_id: fresh.rollout_id, artifact: fresh.artifact },
  };
}
