/**
 * Handles one job: claims the rollout in the journal and runs it. Then commits the result, retries later, returns the job to the queue, or
 * leaves the rollout to another worker. BullMQ decides none of this.
 */
import { onAbort, RolloutFailure, type RolloutJob } from '@swefarm/shared';
import { runOfTask } from '../harbor/settings.ts';
import { abortOf } from './active.ts';
import { afterFailure } from './afterfailure.ts';
import { resumeWork } from './artifact.ts';
import { claimRollout } from './claim.ts';
import { commitAttempt } from './commitresult.ts';
import {
  type AfterAttempt,
  type AttemptContext,
  type AttemptServices,
  type ClaimedRollout,
  DONE,
  type Task,
  Trace,
} from './context.ts';
import { attemptEnd, endAttempt, handBack } from './endattempt.ts';
import { startLive } from './live.ts';
import { endLead } from './samepatch.ts';
import { startStageClock } from './stages.ts';
import { isStale } from './staleness.ts';
import { AttemptTurns } from './turnrecord.ts';
import { retryUntilAnswered, untilTakenOver } from './untilanswered.ts';

/** Time after a failure in which the node of the failure delays the job, so that another node claims it. */
const OTHER_NODE_WAIT_MS = 10_000;
const OTHER_NODE_DELAY_MS = 2_000;

/** @param order priority of the job; it determines the order of admission */
export async function attemptRollout(
  job: RolloutJob,
  services: AttemptServices,
  signal: AbortSignal,
  order = 0,
): Promise<AfterAttempt> {
  const claimed = await claimRollout(job, services, signal, order);
  if ('next' in claimed) return claimed;
  using _permit = claimed.permit;
  const { attempt, claim } = claimed;
  services.active.claimed(job.rollout_id, { attempt, claim });
  const context = contextOf(claimed, services, signal);
  try {
    return await attemptClaimed(context);
  } catch (error) {
    // The attempt was ended from outside while Redis refused to record its end.
    const aborted = abortOf(signal);
    if (error !== aborted) throw error;
    return aborted?.kind === 'drain' ? await handBack(context, Promise.resolve()) : DONE;
  } finally {
    void context.live.end();
    void endLead(context);
  }
}

function contextOf(claimed: ClaimedRollout, services: AttemptServices, signal: AbortSignal): AttemptContext {
  const { job, attempt } = claimed;
  const { run_id, instance_id, rollout_id } = job;
  const { farm, identity, metrics, config } = services;
  const log = services.log.child({ run_id, instance_id, rollout_id, attempt });
  const live = startLive(
    { live: farm.live, clock: farm.clock, ...identity, mostTurns: config.live_turns, log },
    rollout_id,
    attempt,
  );
  const clock = startStageClock((farm.clock.now() - job.submitted_at) / 1000, {
    onEnter: (stage) => live.stage(stage),
    onStage(stage, seconds) {
      metrics.stageSeconds.observe({ stage }, seconds);
      log.debug({ stage, seconds }, 'stage over');
    },
  });
  const turns = new AttemptTurns(claimed, { artifacts: farm.artifacts, log, signal });
  return { ...claimed, services, clock, live, log, trace: new Trace(), turns, signal };
}

async function attemptClaimed(context: AttemptContext): Promise<AfterAttempt> {
  const { previous, cancelled, run, services, trace } = context;
  if (cancelled) return commitAttempt(context, { outcome: 'cancelled', cancelReason: cancelled });
  const decision = services.decide(previous);
  if (decision.action === 'give_up')
    return commitAttempt(context, { outcome: 'failed', failure: decision.failure });
  if (await isBetterElsewhere(decision.avoidNodes, context)) {
    await endAttempt(context, attemptEnd.drained('left to another node'));
    return { next: 'later', delayMs: OTHER_NODE_DELAY_MS, anywhere: true };
  }
  const running = taskOf(context).then(services.runRollout);
  try {
    const judged = await unlessDrained(running, context.signal);
    services.breaker.succeeded();
    // The policy may have advanced since the last check.
    const check = () => isStale(run, trace.trajectory, services.farm.policies);
    if (await retryUntilAnswered('policy', check, untilTakenOver(context)))
      return await commitAttempt(context, { outcome: 'cancelled', cancelReason: 'stale' });
    return await commitAttempt(context, { outcome: 'judged', judged });
  } catch (error) {
    return await afterFailure(context, error, running);
  }
}

/** Rejects as soon as a drain begins, so that the job does not wait for the removal of containers. */
async function unlessDrained<T>(running: Promise<T>, signal: AbortSignal): Promise<T> {
  const drained = Promise.withResolvers<never>();
  using _listener = onAbort(signal, () => {
    if (abortOf(signal)?.kind === 'drain') drained.reject(signal.reason);
  });
  return await Promise.race([drained.promise, running]);
}

async function taskOf(context: AttemptContext): Promise<Task> {
  const { job, run, instance } = context;
  if ('problem' in instance) throw new RolloutFailure('instance_invalid', instance.problem);
  const { farm } = context.services;
  const how = untilTakenOver(context);
  const { patch_ref } = job;
  const patch = patch_ref
    ? await retryUntilAnswered('patch', () => farm.runs.getPatch(run.run_id, patch_ref), how)
    : null;
  const keyRef = run.policy?.api_key_ref;
  const apiKey = keyRef ? await retryUntilAnswered('policy key', () => farm.secrets.get(keyRef), how) : null;
  const { value } = instance;
  const ownRun = runOfTask(run, value);
  return { ...context, run: ownRun, instance: value, patch, apiKey, resumable: await resumeWork(context) };
}

/** Returns true during {@link OTHER_NODE_WAIT_MS} after a failure that another node should retry, if there is another node. */
async function isBetterElsewhere(avoidNodes: readonly string[], context: AttemptContext): Promise<boolean> {
  const { farm, identity } = context.services;
  if (!avoidNodes.includes(identity.node)) return false;
  const failedAt = Math.max(
    ...context.previous.filter((entry) => entry.end?.class !== 'drained').map((entry) => entry.ended_at ?? 0),
  );
  if (farm.clock.now() - failedAt > OTHER_NODE_WAIT_MS) return false;
  const list = () => farm.registry.list();
  const workers = await retryUntilAnswered('workers', list, untilTakenOver(context));
  return workers.some((other) => !avoidNodes.includes(other.node) && other.paused === null);
}
