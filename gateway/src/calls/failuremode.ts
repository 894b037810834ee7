/** How a rollout without a verdict is answered: callers want opposite things (docs/gateway.md has the table). */

import type { Cause, GymRunRequest } from '@swefarm/trajectories';
import type { Caller, FailureAnswer } from '../access/callers.ts';

export type FailureMode = Exclude<FailureAnswer, 'auto'>;

/**
 * How failures are answered to a caller. `auto` goes by what callers stamp on their rows: only NeMo RL and what copies it write `_rowidx`, and of those only its own
 * asynchronous collector numbers prompts (`_ng_task_index`) without numbering rollouts. Gym's collector numbers both.
 */
export function failureMode(caller: Pick<Caller, 'failures'>, { row, episode }: GymRunRequest): FailureMode {
  if (caller.failures !== 'auto') return caller.failures;
  const numbered = row._ng_rollout_index != null;
  if (row._rowidx == null) return numbered || episode ? 'collector' : 'nemo-rl';
  return row._ng_task_index != null && !numbered ? 'nemo-rl-sync' : 'nemo-rl';
}

/** Callers that train on the samples: each sample needs token ids. */
export const isTraining = (mode: FailureMode): boolean => mode !== 'collector';

/** Callers whose step, or whole batch, ends by a refusal: another rollout takes the place of a failed one under the same call. */
const retriesWithinCall = (mode: FailureMode): boolean => mode === 'nemo-rl-sync' || mode === 'verl-recipe';

/**
 * Whether the trainer leaves a masked sample out of its loss: NeMo RL's GRPO loop and asynchronous collector do; its
 * SingleController came to it later than to be taken for granted, and verl's recipe reads no mask at all.
 */
export const honoursMask = (caller: Pick<Caller, 'honoursMask'>, mode: FailureMode): boolean =>
  caller.honoursMask ?? mode === 'nemo-rl-sync';

/**
 * `failure`: an answer that the collector keeps apart. `masked`: a sample without weight. `again`: nothing yet, another rollout
 * takes its place. `refused`: 422, for good. `unavailable`: 503, the caller sends the row again.
 */
export type CallEnding = 'failure' | 'masked' | 'again' | 'refused' | 'unavailable';

/**
 * @param maskable there are tokens to train on, and the caller honours the mask
 * @param rollouts that ran under this call; the conversation before a failure is given only when a fresh rollout failed too
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

/** What a 422 or 503 does to the caller, in a line. */
export const CONSEQUENCES: Record<FailureMode, string> = {
  collector: 'the collection ends here unless it runs with +route_failures_to_sidecar=true',
  'nemo-rl': 'SingleController sends the row again after a 503, and counts a 422 against max_skipped_prompts',
  'nemo-rl-sync': 'the trainer has no re-dispatch: this step ends with an error',
  'verl-recipe': 'the recipe has no re-dispatch: this step ends with an error',
};
