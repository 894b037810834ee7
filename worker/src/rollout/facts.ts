/** Collects the facts from which a reward is computed, and applies the reward table to them. */
import { decideReward, isNoPatch } from '@swefarm/grading';
import {
  allTurns,
  asksPolicy,
  type FailureClass,
  type Instance,
  type InstancePlan,
  linesOf,
  type RewardFacts,
  RolloutFailure,
  type RunRecord,
} from '@swefarm/shared';
import { sequenceTokens } from '../agent/turntokens.ts';
import type { AgentWork, Judged, Task } from './context.ts';

/** Returns the facts that are known before the evaluation. */
export function factsOf(task: Task, work: AgentWork, plan: Pick<InstancePlan, 'blank'>): RewardFacts {
  const { end, patch } = work;
  return {
    exit_status: end?.exit_status ?? null,
    // The verifier of a Harbor task grades the agent's container, so the work is never empty.
    patch_state: task.instance.harbor
      ? 'applied'
      : work.tooLarge
        ? 'too_large'
        : patch === null
          ? 'none'
          : isNoPatch(patch, plan)
            ? 'empty'
            : 'applied',
    patch_origin: end === null ? 'given' : task.run.agent.patch_source,
    evaluation: 'not_run',
    resolved: null,
    trust: 'clean',
    cut_by_token_limit: end?.cut_by_token_limit ?? false,
    ...lengthsOf(end),
    policy_share: end && work.agentSeconds > 0 ? Math.min(1, end.model_seconds / work.agentSeconds) : 0,
    policy_pace: work.policyPace,
    training: isForTraining(task.run),
    sandbox_killed: end?.sandbox_killed ?? false,
    gold_healthy: null,
    gold_time_share: null,
    ungraded: !task.run.evaluation.enabled,
  };
}

/** Returns whether a trainer learns from the rollouts of a run. */
export const isForTraining = ({ kind, policy }: RunRecord): boolean =>
  kind === 'training' || policy?.require_tokens === true;

type Lengths = Pick<RewardFacts, 'turns' | 'malformed_answers' | 'sequence_tokens'>;

/** Returns nulls for a rollout without an agent, and for the conversation of an external driver. */
function lengthsOf(end: AgentWork['end']): Lengths {
  if (end === null) return { turns: null, malformed_answers: null, sequence_tokens: null };
  const { trajectory, malformed_answers } = end;
  const trained = linesOf(trajectory).filter(({ masked }) => masked === null);
  const longest = Math.max(0, ...trained.map(({ turns }) => sequenceTokens(turns)));
  return {
    turns: allTurns(trajectory).length,
    malformed_answers,
    sequence_tokens: longest === 0 ? null : longest,
  };
}

/** Returns the registry's finding about gold that was measured with the same image, grader and network; nulls when no finding applies. */
export function goldHealthOf(
  instance: Pick<Instance, 'health'>,
  here: Pick<InstancePlan, 'grader'> & {
    imageDigest: string;
    network: 'none' | 'egress';
    timeoutSeconds: number;
  },
): Pick<RewardFacts, 'gold_healthy' | 'gold_time_share'> {
  const known = instance.health?.find(
    (one) =>
      one.image_digest === here.imageDigest && one.grader === here.grader && one.network === here.network,
  );
  if (!known) return { gold_healthy: null, gold_time_share: null };
  return {
    gold_healthy: known.gold_resolves,
    gold_time_share: known.gold_resolves ? known.gold_seconds / here.timeoutSeconds : null,
  };
}

/** Failure classes whose message begins with the report's `unreadable`, which states the cause. */
const UNREAD: ReadonlySet<FailureClass> = new Set(['parser_failed', 'tests_cannot_start']);

/** Applies the reward table. Throws RolloutFailure when the table calls these facts a failure, or when the model took no turn. */
export function judge(task: Task, facts: RewardFacts, plan: Pick<InstancePlan, 'grader'>): Judged {
  refuseWithoutTurn(task, facts);
  const { overrides, weights } = task.run.reward;
  const decision = decideReward(facts, overrides, weights);
  if (decision.failure) {
    const { class: failureClass, message } = decision.failure;
    const { unreadable } = task.trace.report ?? {};
    const why = unreadable !== undefined && UNREAD.has(failureClass) ? `${unreadable}; ` : '';
    throw new RolloutFailure(failureClass, `${why}${message} (grader ${plan.grader})`);
  }
  return { facts, ...decision };
}

/** Throws RolloutFailure for a rollout without a turn: the farm, the endpoint or the trainer ended it. */
function refuseWithoutTurn({ run, trace }: Task, facts: RewardFacts): void {
  if (!asksPolicy(run.agent.type) || trace.trajectory === null || trace.trajectory.turns.length > 0) return;
  const [failureClass, why] = facts.sandbox_killed
    ? (['sandbox_lost', 'its sandbox was killed'] as const)
    : facts.exit_status === 'time_limit'
      ? (['policy_slow', 'the time limit was reached'] as const)
      : (['policy_context', `it ended as ${facts.exit_status}`] as const);
  throw new RolloutFailure(failureClass, `${why} before the model's first answer`);
}
