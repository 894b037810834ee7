/** What a caller is told of a rollout without a verdict: callers want opposite things (docs/gateway.md has the table). */
import { FAILURES, type Result } from '@swefarm/shared';
import type { Unjudged } from '../formats/gym/answer.ts';
import type { GymRow } from '../formats/gym/row.ts';
import type { Caller, FailureAnswer } from './callers.ts';

export type Mode = Exclude<FailureAnswer, 'auto'>;

/** `auto` decides between two callers only: the collector numbers its repeats, NeMo RL does not. */
export const modeOf = (caller: Pick<Caller, 'failures'>, row: GymRow): Mode =>
  caller.failures === 'auto' ? (row._ng_rollout_index == null ? 'nemo-rl' : 'collector') : caller.failures;

/** Callers whose samples are trained on: these need token ids in every one. */
export const trains = (mode: Mode): boolean => mode !== 'collector';

/** Callers that cannot be told of a failure without ending their step: they get a sample without weight where there is one. */
export const prefersMasked = (mode: Mode): boolean => mode === 'nemo-rl-sync' || mode === 'verl-recipe';

export type Cause = Pick<Unjudged, 'class' | 'message' | 'terminal' | 'noPersist'>;

/** Why a result is no verdict; null when it is one. */
export function causeOf(result: Result): Cause | null {
  const { failure, outcome, reward, reward_row } = result;
  if (failure) {
    // What is wrong with the instance is wrong with every attempt at it.
    const terminal = FAILURES[failure.class].stage === 'instance';
    return { class: failure.class, message: failure.message, terminal };
  }
  if (outcome === 'cancelled') {
    return { class: reward_row, message: 'the rollout was cancelled', noPersist: true };
  }
  if (reward !== null) return null;
  return { class: 'no_reward', message: `row ${reward_row} of the reward table gives no reward` };
}

/** What a 503 does to the caller, in a line. */
export const CONSEQUENCES: Record<Mode, string> = {
  collector: 'the collection ends here unless it runs with +route_failures_to_sidecar=true',
  'nemo-rl': 'the trainer sends this row again, as after any failure of infrastructure',
  'nemo-rl-sync': 'the trainer has no re-dispatch: this step ends with an error',
  'verl-recipe': 'the recipe takes an empty sample in its place',
};
