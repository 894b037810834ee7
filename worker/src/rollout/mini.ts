/** Opens the agent `mini` for a rollout: follows the policy, binds an endpoint, and records the pace of the policy. */
import { type PolicyConfig, picturesRefusedBy, RolloutFailure } from '@swefarm/shared';
import { runMiniAgent } from '../agent/loop.ts';
import { openPolicy } from '../agent/policy/policy.ts';
import type { Task } from './context.ts';
import { openFeedback } from './feedback.ts';
import { type OpenedAgent, recordTurn } from './openedagent.ts';
import { openPace, policyDeps } from './policydeps.ts';
import type { Staleness } from './staleness.ts';
import { variantOf } from './variant.ts';

/** Throws RolloutFailure `instance_invalid` (no policy, or pictures that cannot be sent) or `policy_bad_request` (no endpoint). */
export async function openMini(task: Task, staleness: Staleness): Promise<OpenedAgent> {
  const { run, instance, signal, services } = task;
  if (!run.policy)
    throw new RolloutFailure('instance_invalid', 'the run names no policy endpoint for agent mini');
  requireShownPictures(task, run.policy);
  const { config, variant } = variantOf(run, instance);
  task.trace.variant = variant;
  using stack = new DisposableStack();
  const followed = stack.use(await services.policies.follow(run.policy));
  const policy = stack.use(openPolicy(run.policy, policyDeps(task, followed)));
  const pace = openPace(task, policy);
  const owned = stack.move();
  let feedback: ReturnType<typeof openFeedback> = null;
  return {
    work: (sandbox) => {
      const { container, shell } = sandbox;
      feedback = openFeedback(task, sandbox);
      return runMiniAgent(
        { instance, config, workdir: container.workdir },
        {
          shell,
          policy,
          signal,
          ...(feedback ? { onSubmit: feedback.judge } : {}),
          beforeTurn: () => staleness.check(),
          onTurn(trajectory) {
            pace.note();
            recordTurn(task, trajectory);
          },
        },
      );
    },
    pausedSeconds: () => policy.pause.seconds() + (feedback?.seconds() ?? 0),
    policyPace: pace.of,
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
