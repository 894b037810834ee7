/**
 * Handles one job: claims the rollout in the journal and runs it. Then commits the result, retries later, returns the job to the queue, or
 * leaves the rollout to another worker. BullMQ decides none of this.
 */
import {
  type CancelReason,
  decide,
  type JournalEntry,
  onAbort,
  RolloutFailure,
  type RolloutJob,
} from '@swefarm/shared';
import { abortOf } from './abort.ts';
import { afterFailure } from './afterfailure.ts';
import { claimRollout } from './claim.ts';
import { commitAttempt } from './commitattempt.ts';
import {
  type AfterAttempt,
  type AttemptContext,
  type ClaimedRollout,
  DONE,
  HAND_BACK,
  untilTakenOver,
} from './context.ts';
import { attemptEnd, endAttempt, handBack } from './endattempt.ts';
import { startLive } from './live.ts';
import { readRecords } from './records.ts';
import { resumeWork } from './resume.ts';
import type { AttemptServices } from './services.ts';
import { startStageClock } from './stages.ts';
import { isStale } from './staleness.ts';
import { emptyTrace, type Task } from './task.ts';
import { retryUntilAnswered } from './untilanswered.ts';

/** Time after a failure in which the node of the failure delays the job, so that another node claims it. */
const OTHER_NODE_WAIT_MS = 10_000;
const OTHER_NODE_DELAY_MS = 2_000;
/** Delay of a job whose run or policy is paused. */
const RUN_PAUSED_MS = 10_000;
/** Delay while the worker of another attempt seems to be alive: two renewals by that worker (RENEW_MS of joblocks.ts) and a second. */
const OTHER_ATTEMPT_MS = 7_000;

export async function attemptRollout(
  job: RolloutJob,
  services: AttemptServices,
  signal: AbortSignal,
): Promise<AfterAttempt> {
  const records = await readRecords(job, services, signal);
  if ('next' in records) return records;
  const claim = await claimRollout(job, records.run, services, signal);
  if (claim === null) return HAND_BACK;
  if (claim.status === 'paused') return { next: 'later', delayMs: RUN_PAUSED_MS };
  if (claim.status === 'in_work') return { next: 'later', delayMs: OTHER_ATTEMPT_MS, passed: claim.claim };
  if (claim.status !== 'claimed') return DONE;
  const { attempt, claim: nonce, previous } = claim;
  services.active.claimed(job.rollout_id, { attempt, claim: nonce });
  const context = contextOf({ job, attempt, claim: nonce, previous, ...records }, services, signal);
  try {
    return await attemptClaimed(context, claim.cancelled);
  } catch (error) {
    // The attempt was ended from outside while Redis refused to record its end.
    const aborted = abortOf(signal);
    if (error !== aborted) throw error;
    return aborted?.kind === 'drain' ? await handBack(context, Promise.resolve()) : DONE;
  } finally {
    void context.live.end();
  }
}

function contextOf(claimed: ClaimedRollout, services: AttemptServices, signal: AbortSignal): AttemptContext {
  const { job, attempt } = claimed;
  const { run_id, instance_id, rollout_id } = job;
  const { farm, identity, metrics, liveTurns } = services;
  const log = services.log.child({ run_id, instance_id, rollout_id, attempt });
  const live = startLive(
    { live: farm.live, clock: farm.clock, ...identity, mostTurns: liveTurns, log },
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
  return { claimed, services, clock, live, log, trace: emptyTrace(), signal };
}

async function attemptClaimed(
  context: AttemptContext,
  cancelled: CancelReason | null,
): Promise<AfterAttempt> {
  const { claimed, services, trace } = context;
  const { previous, run } = claimed;
  if (cancelled) return commitAttempt(context, { outcome: 'cancelled', cancelReason: cancelled });
  const decision = decide(previous);
  if (decision.action === 'give_up')
    return commitAttempt(context, { outcome: 'failed', failure: decision.failure });
  if (await isBetterElsewhere(decision.avoidNodes, previous, services)) {
    await endAttempt(context, attemptEnd.drained('left to another node'));
    return { next: 'later', delayMs: OTHER_NODE_DELAY_MS, anywhere: true };
  }
  const running = taskOf(context).then((task) => services.runRollout(task, services));
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
  const { claimed, services, clock, live, log, trace, signal } = context;
  const { job, attempt, claim, run } = claimed;
  if ('problem' in claimed.instance) throw new RolloutFailure('instance_invalid', claimed.instance.problem);
  const { value: instance } = claimed.instance;
  const { farm } = services;
  const how = untilTakenOver(context);
  const { patch_ref } = job;
  const patch = patch_ref
    ? await retryUntilAnswered('patch', () => farm.runs.getPatch(run.run_id, patch_ref), how)
    : null;
  const keyRef = run.policy?.api_key_ref;
  const apiKey = keyRef ? await retryUntilAnswered('policy key', () => farm.secrets.get(keyRef), how) : null;
  const resumable = await resumeWork(farm, claimed.previous, how);
  return { job, attempt, claim, run, instance, patch, apiKey, resumable, clock, live, log, signal, trace };
}

/** Returns true during {@link OTHER_NODE_WAIT_MS} after a failure that another node should retry, if there is another node. */
async function isBetterElsewhere(
  avoidNodes: readonly string[],
  previous: readonly JournalEntry[],
  { farm, identity }: Pick<AttemptServices, 'farm' | 'identity'>,
): Promise<boolean> {
  if (!avoidNodes.includes(identity.node)) return false;
  const failedAt = Math.max(
    ...previous.filter((entry) => entry.end?.class !== 'drained').map((entry) => entry.ended_at ?? 0),
  );
  if (farm.clock.now() - failedAt > OTHER_NODE_WAIT_MS) return false;
  const workers = await farm.registry.list();
  return workers.some((other) => !avoidNodes.includes(other.node) && other.paused === null);
}
