/** The agent `mini` in a rollout: its policy is followed, its endpoint bound, its pace noted. */
import { RolloutFailure } from '@swefarm/shared';
import { runMiniAgent } from '../agent/loop.ts';
import { watchPauseLimit } from '../agent/policy/pauselimit.ts';
import { openPolicy, type PolicyDeps } from '../agent/policy/policy.ts';
import type { FollowedPolicy } from '../agent/policy/watch.ts';
import type { Node } from '../node/node.ts';
import { type OpenedAgent, recordTurn } from './openedagent.ts';
import type { Staleness } from './staleness.ts';
import type { Task } from './task.ts';

/** Throws RolloutFailure `instance_invalid` when the run names no policy. */
export async function openMini(task: Task, node: Node, staleness: Staleness): Promise<OpenedAgent> {
  const { run, instance, signal } = task;
  if (!run.policy)
    throw new RolloutFailure('instance_invalid', 'the run names no policy endpoint for agent mini');
  using stack = new DisposableStack();
  const followed = stack.use(await node.policies.follow(run.policy));
  const policy = stack.use(openPolicy(run.policy, policyDeps(task, node, followed)));
  const notePace = (): void => {
    const heard = policy.throughput();
    if (heard) node.paces.note(run.run_id, task.job.rollout_id, heard);
  };
  const owned = stack.move();
  return {
    work: ({ container, history }) =>
      runMiniAgent(
        { instance, config: run.agent, workdir: container.workdir },
        {
          shell: history.shell,
          policy,
          signal,
          beforeTurn: () => staleness.look(),
          onTurn(trajectory) {
            notePace();
            recordTurn(task, node, trajectory);
          },
        },
      ),
    pausedSeconds: () => policy.pause.seconds(),
    policyPace() {
      notePace();
      return node.paces.of(run.run_id, task.job.rollout_id);
    },
    [Symbol.dispose]: () => owned.dispose(),
  };
}

function policyDeps(task: Task, node: Node, followed: FollowedPolicy): PolicyDeps {
  const { run, job, attempt, apiKey, log } = task;
  return {
    apiKey,
    rolloutId: job.rollout_id,
    attempt,
    limits: { contextLimit: run.agent.context_limit, sequenceBudget: run.agent.max_sequence_tokens },
    followed,
    endpoints: node.endpoints,
    awaiting: () =>
      watchPauseLimit({
        followed,
        clock: node.farm.clock,
        limitMs: node.policyPauseLimitMs,
        onOverdue(why) {
          log.warn({ why }, 'handed back: it has waited too long for its policy');
          node.active.letGo(job.rollout_id, why);
        },
      }),
    log,
  };
}
