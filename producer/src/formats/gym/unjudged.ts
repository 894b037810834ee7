/** Why a result has no verdict, in the terms of Gym's failure rows, and whether another rollout would end the same way. */
import { FAILURES, type Failure, type FailureClass, type Result } from '@swefarm/shared';
import type { Unjudged } from './answer.ts';

/**
 * `passing`: infrastructure failed, another rollout may be judged. `broken`: the same row fails each time. `withheld`: it ran to its
 * end and gets no reward; replacing it would select among rollouts and bias the training data.
 */
export type CauseKind = 'passing' | 'broken' | 'withheld';

export type Cause = Pick<Unjudged, 'class' | 'message' | 'terminal' | 'noPersist'> & { kind: CauseKind };

/** Final for the worker, but a fault of the whole farm and not of the row: an operator repairs it while trainers wait. */
const OF_THE_FLEET: readonly FailureClass[] = ['policy_unauthorized', 'policy_model_unknown'];
/** Unexpected errors, perhaps of one node: they never count as faults of the row. */
const UNFORESEEN: readonly FailureClass[] = ['bug'];
/** Faults of the instance repeat with every attempt. */
const OF_THE_INSTANCE: readonly FailureClass[] = ['image_not_found'];

/** Why a result has no verdict; null when it has one. */
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
