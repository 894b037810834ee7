/** Opens the agent `mini` for a rollout: follows the policy, binds an endpoint, and records the pace of the policy. */
import { type PolicyConfig, picturesRefusedBy, type RecordedTurn, RolloutFailure } from '@swefarm/shared';
import type { Permit } from '../admission/admission.ts';
import type { PolicyOfLines } from '../agent/agent.ts';
import { unionOf } from '../agent/deadline.ts';
import { runMiniAgent } from '../agent/loop.ts';
import { openPolicy } from '../agent/policy/policy.ts';
import { openReplay, type Replay } from '../agent/replay.ts';
import type { Task } from './context.ts';
import { openFeedback } from './feedback.ts';
import { type OpenedAgent, recordTurn, showTurn } from './openedagent.ts';
import { openPace, policyDeps } from './policydeps.ts';
import type { Staleness } from './staleness.ts';
import { variantOf } from './variant.ts';

/** Throws RolloutFailure `instance_invalid` (no policy, or pictures that cannot be sent) or `policy_bad_request` (no endpoint). */
export async function openMini(
  task: Task,
  staleness: Staleness,
  permit: Permit | null,
): Promise<OpenedAgent> {
  const { run, instance, signal, services } = task;
  if (!run.policy)
    throw new RolloutFailure('instance_invalid', 'the run names no policy endpoint for agent mini');
  requireShownPictures(task, run.policy);
  const { config, variant } = variantOf(run, instance);
  task.trace.variant = variant;
  using stack = new DisposableStack();
  const followed = stack.use(await services.policies.follow(run.policy));
  const suspended = permit ? [permit.pause] : [];
  const pause = stack.use(unionOf(followed.pause, ...suspended));
  const stopped = stack.use(unionOf(followed.stopped, ...suspended));
  const policy = stack.use(openPolicy(run.policy, policyDeps(task, { ...followed, pause, stopped }, permit)));
  const pace = openPace(task, policy);
  const recorded = await recordedTurns(task);
  let clockPause = policy.pause;
  const owned = stack.move();
  let feedback: ReturnType<typeof openFeedback> = null;
  return {
    async work(sandbox) {
      const { container, shell } = sandbox;
      feedback = openFeedback(task, sandbox);
      const replay = replayOf(task, policy, recorded);
      clockPause = replay.policy.pause;
      const end = await runMiniAgent(
        { instance, config, workdir: container.workdir },
        {
          shell,
          policy: replay.policy,
          signal,
          ...(feedback ? { onSubmit: feedback.judge } : {}),
          beforeTurn(trajectory) {
            if (run.branch_of) trajectory.branch_of = run.branch_of;
            replay.beforeTurn(trajectory);
            staleness.check();
          },
          onAnswer: replay.onAnswer,
          onTurn(trajectory) {
            if (replay.has(trajectory.turns.length)) return showTurn(task, trajectory);
            pace.note();
            recordTurn(task, trajectory);
          },
        },
      );
      replay.requireOver();
      return end;
    },
    pausedSeconds: () => clockPause.seconds() + (feedback?.seconds() ?? 0),
    policyPace: pace.of,
    [Symbol.dispose]: () => owned.dispose(),
  };
}

/** Returns the turns to replay: those that a branch shares, or those of an earlier attempt. */
async function recordedTurns({ run, patch, turns }: Task): Promise<readonly RecordedTurn[]> {
  const { branch_of: branch } = run;
  if (branch && patch === null)
    throw new RolloutFailure(
      'instance_invalid',
      `the turns of ${branch.rollout_id} did not come with the job`,
    );
  return await turns.read(branch ? patch : null);
}

const replayOf = (
  { run, services: { metrics }, turns, log }: Task,
  policy: PolicyOfLines,
  recorded: readonly RecordedTurn[],
): Replay =>
  openReplay(policy, {
    turns: recorded,
    begun: turns.begun,
    mostSeconds: run.agent.time_limit,
    onRecord: (turn) => turns.add(turn),
    onBegin: (read) => turns.begin(read),
    onResumed(tokens) {
      metrics.replayedTokens.inc(tokens);
      if (turns.replay) turns.replay.tokens = tokens;
      log.info({ tokens }, 'an answer that an earlier attempt began was continued');
    },
    onOver(seconds) {
      metrics.replays.inc({ end: 'continued' });
      metrics.replayedTurns.inc(recorded.length);
      log.info({ turns: recorded.length, seconds }, 'recorded turns replayed: the rollout continues');
    },
  });

/** `submit` refuses runs whose pictures cannot be sent. This function refuses such runs that another software version submitted. */
function requireShownPictures({ run, instance }: Task, policy: PolicyConfig): void {
  const { pictures = [] } = instance;
  if (run.agent.pictures === 'drop' || pictures.length === 0) return;
  const lost = pictures.find(({ file }) => !file);
  const why = lost
    ? `the picture ${lost.address} has no file`
    : picturesRefusedBy(run.agent.type, policy.token_mode);
  if (why !== null)
    throw new RolloutFailure('instance_invalid', `${why}; give --pictures drop to send the text alone`);
}
