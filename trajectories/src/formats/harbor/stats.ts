/** Counts the trials of a job as Harbor 0.25 does (`JobStats`, `compute_pass_at_k_by_evals`). */
import { passAt } from '../../output/profile.ts';
import { mean } from '../../output/tally.ts';
import type { Trial } from './trial.ts';

/** The parts of a trial that the counts need. */
type Counted = Pick<Trial, 'trial_name' | 'task_name'> & {
  evaluation: string;
  reward: number | null;
  exception: string | null;
  tokens: { prompt: number; completion: number };
  cost: number | null;
};

export const countedOf = ({ agent_info, source, ...trial }: Trial): Counted => ({
  trial_name: trial.trial_name,
  task_name: trial.task_name,
  evaluation: [agent_info.name, agent_info.model_info?.name, source ?? 'adhoc'].filter(Boolean).join('__'),
  reward: trial.verifier_result?.rewards.reward ?? null,
  exception: trial.exception_info?.exception_type ?? null,
  tokens: { prompt: trial.agent_result.n_input_tokens, completion: trial.agent_result.n_output_tokens },
  cost: trial.agent_result.cost_usd,
});

export function statsOf(trials: readonly Counted[]) {
  const costs = trials.flatMap(({ cost }) => cost ?? []);
  return {
    n_completed_trials: trials.length,
    n_errored_trials: trials.filter(({ exception }) => exception !== null).length,
    n_running_trials: 0,
    n_pending_trials: 0,
    // An export has no cancelled rollouts.
    n_cancelled_trials: 0,
    n_retries: 0,
    evals: Object.fromEntries(
      [...Map.groupBy(trials, ({ evaluation }) => evaluation)].map(([name, own]) => [
        name,
        evaluationOf(own),
      ]),
    ),
    n_input_tokens: sum(trials.map(({ tokens }) => tokens.prompt)),
    n_cache_tokens: null,
    n_output_tokens: sum(trials.map(({ tokens }) => tokens.completion)),
    cost_usd: costs.length === 0 ? null : sum(costs),
  };
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

/** Returns counts, mean and pass@k of one evaluation. In Harbor's mean, a trial without a reward counts as 0. */
function evaluationOf(trials: readonly Counted[]) {
  const rewarded = trials.filter((one): one is Counted & { reward: number } => one.reward !== null);
  const raised = trials.filter((one): one is Counted & { exception: string } => one.exception !== null);
  return {
    n_trials: rewarded.length,
    n_errors: raised.length,
    metrics: [{ mean: mean(trials.map(({ reward }) => reward ?? 0)) }],
    pass_at_k: passOf(trials),
    reward_stats: rewarded.length === 0 ? {} : { reward: namesBy(rewarded, ({ reward }) => String(reward)) },
    exception_stats: namesBy(raised, ({ exception }) => exception),
  };
}

function namesBy<T extends Counted>(
  trials: readonly T[],
  keyOf: (trial: T) => string,
): Record<string, string[]> {
  const named = [...Map.groupBy(trials, keyOf)].map(([key, own]) => [
    key,
    own.map(({ trial_name }) => trial_name),
  ]);
  return Object.fromEntries(named);
}

/**
 * Returns pass@k for k = 2, 4, 8, … and k = 5, 10, …, up to the number of trials of the task with the fewest trials. Returns an empty
 * object if a reward is neither 0 nor 1.
 */
function passOf(trials: readonly Counted[]): Record<string, number> {
  if (trials.some(({ reward }) => reward !== null && reward !== 0 && reward !== 1)) return {};
  const tasks = [...Map.groupBy(trials, ({ task_name }) => task_name).values()];
  const most = Math.min(...tasks.map(({ length }) => length));
  const sizes: number[] = [];
  for (let k = 2; k <= most; k *= 2) sizes.push(k);
  for (let k = 5; k <= most; k += 5) sizes.push(k);
  return Object.fromEntries(
    [...new Set(sizes)].map((k) => [
      k,
      mean(tasks.map((own) => passAt(own.length, own.filter(({ reward }) => reward === 1).length, k))) ?? 0,
    ]),
  );
}
