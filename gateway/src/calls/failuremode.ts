/** How the gateway answers a rollout without a verdict, by caller (table in docs/gateway.md). */

import type { Cause, GymRunRequest } from '@swefarm/trajectories';
import type { Caller, FailureAnswer } from '../access/callers.ts';

export type FailureMode = Exclude<FailureAnswer, 'auto'>;

/**
 * Returns the mode of a call. `auto` decides by the numbers in the row: only NeMo RL writes `_rowidx`, and only the asynchronous collector
 * of NeMo RL writes `_ng_task_index` without `_ng_rollout_index`. Gym's collector writes `_ng_rollout_index`. A row without numbers gets
 * `nemo-rl`, and an episode without numbers gets `collector`.
 */
export function failureMode(caller: Pick<Caller, 'failures'>, { row, episode }: GymRunRequest): FailureMode {
  if (caller.failures !== 'auto') return caller.failures;
  const numbered = row._ng_rollout_index != null;
  if (row._rowidx == null) return numbered || episode ? 'collector' : 'nemo-rl';
  return row._ng_task_index != null && !numbered ? 'nemo-rl-sync' : 'nemo-rl';
}

/** Returns whether the caller trains on the samples, which therefore need token ids. */
export const isTraining = (mode: FailureMode): boolean => mode !== 'collector';

/** Returns whether another rollout of the call replaces a failed one, because a refusal would fail the caller's training step. */
const retriesWithinCall = (mode: FailureMode): boolean => mode === 'nemo-rl-sync' || mode === 'verl-recipe';

/**
 * Returns whether the trainer excludes masked samples from its loss. The GRPO loop and the asynchronous collector of NeMo RL exclude
 * them, SingleController excludes them only in later versions, and the recipe of verl never excludes them.
 */
export const honoursMask = (caller: Pick<Caller, 'honoursMask'>, mode: FailureMode): boolean =>
  caller.honoursMask ?? mode === 'nemo-rl-sync';

/**
 * `failure`: an answer that marks the episode as failed. `masked`: an answer that the trainer excludes from its loss. `again`: no answer,
 * another rollout replaces the failed one. `refused`: a permanent 422. `unavailable`: a 503, so that the caller sends the row again.
 */
export type CallEnding = 'failure' | 'masked' | 'again' | 'refused' | 'unavailable';

/**
 * @param maskable the rollout has tokens, and the caller honours the mask
 * @param rollouts number of rollouts of this call until now; a failure of kind `passing` is masked only from the second rollout on
 */
export function decideEnding(
  { kind }: Pick<Cause, 'kind'>,
  mode: FailureMode,
  { maskable, rollouts }: { maskable: boolean; rollouts: number },
): CallEnding {
  if (mode === 'collector') return 'failure';
  if (maskable && kind === 'withheld') return 'masked';
  if (!retriesWithinCall(mode)) return kind === 'passing' ? 'unavailable' : 'refused';
  if (maskable && (kind === 'broken' || rollouts > 1)) return 'masked';
  return kind === 'passing' ? 'again' : 'refused';
}

/** Effect of a 422 or 503 on the caller. */
export const CONSEQUENCES: Record<FailureMode, string> = {
  collector: 'the collection ends here unless it runs with +route_failures_to_sidecar=true',
  'nemo-rl': 'SingleController sends the row again after a 503, and counts a 422 against max_skipped_prompts',
  'nemo-rl-sync': 'the trainer has no re-dispatch: this step ends with an error',
  'verl-recipe': 'the recipe has no re-dispatch: this step ends with an error',
};
