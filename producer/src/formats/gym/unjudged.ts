/** Why a result is no verdict, in the words of Gym's failure rows, and whether that would be so again. */
import { FAILURES, type Failure, type FailureClass, type Result } from '@swefarm/shared';
import type { Unjudged } from './answer.ts';

/**
 * `passing`: infrastructure, another rollout may be judged. `broken`: the same row ends so each time. `withheld`: it was played to its
 * end and gets no reward, so another rollout in its place would be a choice among rollouts.
 */
export type CauseKind = 'passing' | 'broken' | 'withheld';

export type Cause = Pick<Unjudged, 'class' | 'message' | 'terminal' | 'noPersist'> & { kind: CauseKind };

/** Final for the worker, yet of the whole fleet and not of the row: an operator mends it while trainers wait. */
const OF_THE_FLEET: readonly FailureClass[] = ['policy_unauthorized', 'policy_model_unknown'];
/** Nobody foresaw it: of one node perhaps, and never said to be the row's. */
const UNFORESEEN: readonly FailureClass[] = ['bug'];
/** What is wrong with the instance is wrong with every attempt at it. */
const OF_THE_INSTANCE: readonly FailureClass[] = ['image_not_found'];

/** Why a result is no verdict; null when it is one. */
export function unjudgedCause(result: Result): Cause | null {
  const { failure, outcome, reward, reward_row } = result;
  if (failure) {
    const terminal = FAILURES[failure.class].stage === 'instance' || OF_THE_INSTANCE.includes(failure.class);
    return { class: failure.class, message: failure.message, terminal, kind: kindOf(failure, terminal) };
  }
  if (outcome === 'cancelled') {
    const message = 'the rollout was cancelled';
    return { class: reward_row, message, noPersist: true, kind: 'passing' };
  }
  if (reward !== null) return null;
  const message = `row ${reward_row} of the reward table gives no reward`;
  return { class: 'no_reward', message, kind: 'withheld' };
}

function kindOf({ class: name, stage }: Failure, terminal: boolean): CauseKind {
  if (terminal) return 'broken';
  if ([...OF_THE_FLEET, ...UNFORESEEN].includes(name) || FAILURES[name].retryable) return 'passing';
  return stage === 'evaluation' ? 'withheld' : 'broken';
}
