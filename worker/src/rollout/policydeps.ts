/** What the policy client of a rollout uses of its worker. */
import type { Permit } from '../admission/admission.ts';
import type { PolicyOfLines } from '../agent/agent.ts';
import { watchPauseLimit } from '../agent/policy/pauselimit.ts';
import type { PolicyDeps } from '../agent/policy/turncontext.ts';
import type { FollowedPolicy } from '../agent/policy/watch.ts';
import type { Task } from './context.ts';

export function policyDeps(task: Task, followed: FollowedPolicy, permit: Permit | null): PolicyDeps {
  const { run, job, attempt, apiKey, log, services } = task;
  return {
    apiKey,
    rolloutId: job.rollout_id,
    attempt,
    limits: { contextLimit: run.agent.context_limit, sequenceBudget: run.agent.max_sequence_tokens },
    followed,
    endpoints: services.endpoints,
    refusalPatience: services.config.policy_pause_limit_seconds,
    onRefused: () => permit?.refused(),
    awaiting: () =>
      watchPauseLimit(followed, services, (why) => {
        log.warn({ why }, 'rollout handed back: it waited too long for its policy');
        services.active.abort(job.rollout_id, 'drain', undefined, why);
      }),
    log,
  };
}

/** Records the pace of the rollout's policy on this worker. */
export function openPace({ run, job, services }: Task, policy: Pick<PolicyOfLines, 'throughput'>) {
  const note = (): void => {
    const throughput = policy.throughput();
    if (throughput) services.policyPaces.record(run.run_id, job.rollout_id, throughput);
  };
  return {
    note,
    /** Returns the pace, as in RewardFacts. */
    of(): number | null {
      note();
      return services.policyPaces.of(run.run_id, job.rollout_id);
    },
  };
}
