/** How the gateway answers a rollout without a verdict, by caller (table in docs/gateway.md). */

import type { Cause, GymRunRequest } from '@swefarm/trajectories';
import type { Caller, FailureAnswer } from '../access/callers.ts';

export type FailureMode = Exclude<FailureAnswer, 'auto'>;

/**
 * Returns the mode of a call. `auto` reads the numbers in the row: only NeMo RL writes `_rowidx`, and only its asynchronous collector
 * numbers prompts (`_ng_task_index`) without rollouts. Gym's collector numbers both.
 */
export function failureMode(caller: Pick<Caller, 'failures'>, { row, episode }: GymRunRequest): FailureMode {
  if (caller.failures !== 'auto') return caller.failures;
  const numbered = row._ng_rollout_index != null;
  if (row._rowidx == null) return numbered || episode ? 'collector' : 'nemo-rl';
  return row._ng_task_index != null && !numbered ? 'nemo-rl-sync' : 'nemo-rl';
}

/** Callers that train on samples, which therefore need token ids. */
export const isTraining = (mode: FailureMode): boolean => mode !== 'collector';

/** Callers whose step fails by a refusal: another rollout replaces a failed one under the same call. */
const retriesWithinCall = (mode: FailureMode): boolean => mode === 'nemo-rl-sync' || mode === 'verl-recipe';

/**
 * Returns whether the trainer excludes masked samples from its loss. NeMo RL's GRPO loop and asynchronous collector do, its
 * SingleController only in later versions, verl's recipe never.
 */
export const honoursMask = (caller: Pick<Caller, 'honoursMask'>, mode: FailureMode): boolean =>
  caller.honoursMask ?? mode === 'nemo-rl-sync';

/**
 * `failure`: a failed answer for the collector. `masked`: a sample without weight. `again`: no answer, another rollout replaces it.
 * `refused`: 422, permanent. `unavailable`: 503, the caller sends the row again.
 */
export type CallEnding = 'failure' | 'masked' | 'again' | 'refused' | 'unavailable';

/**
 * @param maskable the rollout has tokens, and the caller honours the mask
 * @param rollouts number under this call; the conversation before a failure is answered only after a second failure
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
