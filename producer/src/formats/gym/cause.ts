/** Why a result is no verdict, in the words of Gym's failure rows. */
import { FAILURES, type Result } from '@swefarm/shared';
import type { Unjudged } from './answer.ts';

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
