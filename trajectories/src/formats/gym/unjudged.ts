/** Explains why a result has no verdict, in terms of Gym's failure rows. */
import { FAILURES, type Failure, type FailureClass, type Result } from '@swefarm/shared';
import type { Unjudged } from './answer.ts';

/**
 * `passing`: another rollout of the row may be judged. `broken`: every rollout of the row fails. `withheld`: the rollout ended without a
 * reward, and a replacement would bias the training data.
 */
export type CauseKind = 'passing' | 'broken' | 'withheld';

export type Cause = Pick<Unjudged, 'class' | 'message' | 'terminal' | 'noPersist'> & { kind: CauseKind };

/** Faults of the farm that an operator repairs while trainers wait; the row is not at fault. */
const OF_THE_FLEET: readonly FailureClass[] = ['policy_unauthorized', 'policy_model_unknown'];
/** Unexpected errors are not faults of the row. */
const UNFORESEEN: readonly FailureClass[] = ['bug'];
/** Faults of the instance, which repeat with every attempt. */
const OF_THE_INSTANCE: readonly FailureClass[] = ['image_not_found'];
/** Faults of the patch or the instance. Only a control evaluation can show that the instance is at fault. */
const NEEDS_CONTROL: readonly FailureClass[] = ['tests_cannot_start', 'parser_failed', 'evaluation_timeout'];

/** Returns why the result has no verdict; null if it has one. */
export function unjudgedCause(result: Result): Cause | null {
  const { failure, outcome, reward, reward_row } = result;
  if (failure && NEEDS_CONTROL.includes(failure.class)) {
    const { class: name, message } = failure;
    return { class: name, message, ...attributed(result.facts, name) };
  }
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

/** Attributes a failed evaluation to instance or patch. Without evidence against either, another rollout may be judged. */
function attributed(facts: Result['facts'], name: FailureClass): Pick<Cause, 'kind' | 'terminal'> {
  const share = facts?.control_time_share ?? facts?.gold_time_share ?? null;
  const isBroken =
    name === 'evaluation_timeout' ? share !== null && share >= 1 : facts?.tests_start === false;
  if (isBroken) return { kind: 'broken', terminal: true };
  // Gold or the unchanged tree ended within the limit, so this patch is at fault.
  return { kind: share !== null ? 'withheld' : 'passing', terminal: false };
}

function kindOf({ class: name, stage }: Failure, terminal: boolean): CauseKind {
  if (terminal) return 'broken';
  if ([...OF_THE_FLEET, ...UNFORESEEN].includes(name) || FAILURES[name].retryable) return 'passing';
  return stage === 'evaluation' ? 'withheld' : 'broken';
}
