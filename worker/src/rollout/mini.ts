/** Opens the agent `mini` for a rollout: follows the policy, binds an endpoint, and records the pace of the policy. */
import { type PolicyConfig, picturesRefusedBy, RolloutFailure } from '@swefarm/shared';
import { runMiniAgent } from '../agent/loop.ts';
import { watchPauseLimit } from '../agent/policy/pauselimit.ts';
import { openPolicy } from '../agent/policy/policy.ts';
import type { PolicyDeps } from '../agent/policy/turncontext.ts';
import type { FollowedPolicy } from '../agent/policy/watch.ts';
import type { Task } from './context.ts';
import { type OpenedAgent, recordTurn } from './openedagent.ts';
import type { Staleness } from './staleness.ts';

/** Throws RolloutFailure `instance_invalid` (no policy, or pictures that cannot be sent) or `policy_bad_request` (no endpoint). */
export async function openMini(task: Task, staleness: Staleness): Promise<OpenedAgent> {
  const { run, instance, signal, services } = task;
  if (!run.policy)
    throw new RolloutFailure('instance_invalid', 'the run names no policy endpoint for agent mini');
  requireShownPictures(task, run.policy);
  using stack = new DisposableStack();
  const followed = stack.use(await services.policies.follow(run.policy));
  const policy = stack.use(openPolicy(run.policy, policyDeps(task, followed)));
  const notePace = (): void => {
    const throughput = policy.throughput();
    if (throughput) services.policyPaces.record(run.run_id, task.job.rollout_id, throughput);
  };
  const owned = stack.move();
  return {
    work: ({ container, shell }) =>
      runMiniAgent(
        { instance, config: run.agent, workdir: container.workdir },
        {
          shell,
          policy,
          signal,
          beforeTurn: () => staleness.check(),
          onTurn(trajectory) {
            notePace();
            recordTurn(task, trajectory);
          },
        },
      ),
    pausedSeconds: () => policy.pause.seconds(),
    policyPace() {
      notePace();
      return services.policyPaces.of(run.run_id, task.job.rollout_id);
    },
    [Symbol.dispose]: () => owned.dispose(),
  };
}

/** `submit` refuses runs whose pictures cannot be sent. This function refuses such runs that another software version submitted. */
function requireShownPictures({ run, instance }: Task, policy: PolicyConfig): void {
  const { pictures = [] } = instance;
  if (run.agent.pictures === 'drop' || pictures.length === 0) return;
  const lost = pictures.find(({ file }) => !file);
  const why = lost ? `the picture ${lost.address} has no file` : picturesRefusedBy(policy.token_mode);
  if (why !== null)
    throw new RolloutFailure('instance_invalid', `${why}; give --pictures drop to send the text alone`);
}

function policyDeps(task: Task, followed: FollowedPolicy): PolicyDeps {
  const { run, job, attempt, apiKey, log, services } = task;
  return {
    apiKey,
    rolloutId: job.rollout_id,
    attempt,
    limits: { contextLimit: run.agent.context_limit, sequenceBudget: run.agent.max_sequence_tokens },
    followed,
    endpoints: services.endpoints,
    awaiting: () =>
      watchPauseLimit(followed, services, (why) => {
        log.warn({ why }, 'rollout handed back: it waited too long for its policy');
        services.active.abort(job.rollout_id, 'drain', undefined, why);
      }),
    log,
  };
}
