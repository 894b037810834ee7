/**
 * Runs the rollouts of a dry run: chooses a stored rollout, publishes its turns during the scripted delay, and judges its stored facts by the
 * run's reward table. Claims, retries, cancels, sessions and commits work as in any worker.
 */
import {
  type ArtifactContent,
  allTurns,
  type DryRun,
  decide,
  type RewardFacts,
  RolloutFailure,
  type StoredRollout,
  sleepAtMost,
  type Trajectory,
  type Turn,
} from '@swefarm/shared';
import { untilServing } from '../agent/deadline.ts';
import type { FollowedPolicy } from '../agent/policy/watch.ts';
import type { Play } from '../node/node.ts';
import type { Judged, Task } from '../rollout/context.ts';
import { isForTraining, judge } from '../rollout/facts.ts';
import { recordTurn } from '../rollout/openedagent.ts';
import { createFaults, type Faults } from './faults.ts';
import { playSession } from './session.ts';
import { openStored } from './stored.ts';
import { notContiguous, shareOf, withVersions } from './turns.ts';

/** Returns the function with which a worker runs the rollouts of a dry run. */
export function playOf(dryRun: DryRun): Play {
  const { script } = dryRun;
  const stored = openStored(dryRun);
  const faultsOf = createFaults(script);
  const runRollout = async (task: Task): Promise<Judged> => {
    const name = stored.nameOf(task.job.rollout_id);
    const source = stored.choose(name);
    const faults = faultsOf(name, source.seconds);
    task.trace.dryRun = { of: source.rollout_id, faults: faults.names };
    const content = await stored.read(source);
    const changed = { ...content, trajectory: content.trajectory && changedBy(content.trajectory, faults) };
    const isSession = task.run.agent.type === 'external';
    if (!isSession) await task.clock.time('agent', () => publish(task, changed, faults, script));
    await cancel(task, faults);
    fail(task, faults, isSession ? null : changed.trajectory);
    if (isSession) await playSession(task, changed);
    return conclude(task, changed, source, faults);
  };
  return { runRollout, dryRun: true, decide: script.retries ? decide : withoutRetries };
}

/** Ends a rollout after its first failure, so that a scripted failure causes no retry delays. */
const withoutRetries: typeof decide = (entries) => {
  const last = entries.findLast(({ end }) => end?.stage != null);
  if (!last?.end?.stage || last.end.class === 'drained' || last.end.class === 'done') return decide(entries);
  const { stage, class: failureClass, cause } = last.end;
  const failure = { stage, class: failureClass, message: cause ?? '', attempts: entries.length };
  return { action: 'give_up', failure, parked: false };
};

const changedBy = (trajectory: Trajectory, { ids }: Faults): Trajectory =>
  ids === 'not_contiguous' ? notContiguous(trajectory) : trajectory;

/** Publishes the turns one by one, at equal intervals of the delay. No turn begins while the policy is paused. */
async function publish(
  task: Task,
  content: ArtifactContent,
  { delaySeconds, versions }: Faults,
  script: DryRun['script'],
): Promise<void> {
  const { run, signal } = task;
  using followed = run.policy === null ? null : await task.services.policies.follow(run.policy);
  const stored = content.trajectory;
  const parts = Math.max(1, stored?.turns.length ?? 0);
  const known = knownVersion(task, followed, script);
  const model = script.model ?? run.policy?.model ?? stored?.model ?? null;
  const turns: Turn[] = [];
  for (let at = 0; at < parts; at++) {
    if (followed) await untilServing(followed.pause, signal);
    const before = known();
    await sleepAtMost((delaySeconds * 1000) / parts, signal);
    signal.throwIfAborted();
    const turn = stored?.turns[at];
    if (!stored || !turn) continue;
    const sampledBy = versions
      ? shareOf(versions, at, parts)
      : { start: before ?? null, end: known() ?? null };
    turns.push(sampledBy.end === null ? turn : withVersions(turn, sampledBy));
    const messages = stored.messages.slice(0, stored.turns[at + 1]?.message);
    recordTurn(task, { ...stored, model, messages, turns: [...turns] });
  }
  if (!stored) return;
  // Turns of other lines are published together with the last turn.
  const last = turns.at(-1)?.policy_version.end ?? null;
  const lines = stored.lines?.map((line) => ({
    ...line,
    turns:
      last === null ? line.turns : line.turns.map((turn) => withVersions(turn, { start: last, end: last })),
  }));
  content.trajectory = { ...stored, model, turns, ...(lines ? { lines } : {}) };
}

/** Returns a function that returns the current policy version; undefined: the stored versions stay. */
function knownVersion({ run }: Task, followed: FollowedPolicy | null, { version }: DryRun['script']) {
  if (version === 'stored') return () => undefined;
  if (version !== 'announced') return () => version;
  return () => followed?.record()?.version ?? run.policy?.version ?? undefined;
}

async function cancel({ job, signal, services: { active, farm } }: Task, { cancels }: Faults): Promise<void> {
  if (cancels === null) return;
  if (cancels === 'group') await farm.cancel.cancelGroup(job.run_id, job.instance_id);
  active.abort(job.rollout_id, 'cancelled', 'cancelled');
  signal.throwIfAborted();
}

/** Throws the failure that the script sets. Also fails a run that requires tokens if the stored ids are missing or not contiguous. */
function fail({ run, attempt }: Task, faults: Faults, trajectory: Trajectory | null): void {
  if (faults.fail && attempt <= (faults.attempts ?? attempt))
    throw new RolloutFailure(faults.fail, `dry run: ${faults.names.join('; ')}`);
  if (trajectory === null || run.policy?.require_tokens !== true) return;
  const hasTokens = allTurns(trajectory).every((turn) => turn.tokens !== null);
  if (hasTokens && trajectory.contiguous !== false) return;
  const why = hasTokens ? 'are not contiguous' : 'are missing';
  throw new RolloutFailure('policy_tokens', `dry run: token ids of the stored rollout ${why}`);
}

/** Records the artifact of the stored rollout, and judges its facts. */
function conclude(
  task: Task,
  content: ArtifactContent,
  { facts }: StoredRollout,
  { reward }: Faults,
): Judged {
  const { run, trace } = task;
  const { patch, report, test_log, eval_script } = content;
  const ungraded = facts.ungraded || !run.evaluation.enabled;
  const known: RewardFacts = { ...facts, training: isForTraining(run), ungraded };
  if (reward === 'none') {
    // In a training run, the reward table gives no reward to a rollout that reached the time limit while it waited for its policy.
    Object.assign(known, { exit_status: 'time_limit', policy_share: 1, policy_pace: null, training: true });
    if (content.trajectory) content.trajectory = { ...content.trajectory, exit_status: 'time_limit' };
  }
  const isSession = run.agent.type === 'external';
  Object.assign(trace, {
    ...(isSession ? {} : { trajectory: content.trajectory }),
    ...{ patch, report, testLog: test_log === null ? null : Buffer.from(test_log), evalScript: eval_script },
    facts: known,
  });
  return judge(task, known, { grader: report?.grader ?? 'stored' });
}
