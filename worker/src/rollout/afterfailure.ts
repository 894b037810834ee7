/** Decides what follows an attempt that failed or was ended: commit, retry, return to the queue, or leave to another worker. */
import { diskIsFull } from '@swefarm/sandbox';
import {
  errorMessage,
  type FailureClass,
  type FailureStage,
  type JournalEntry,
  RolloutFailure,
  refusedByRedis,
  SwefarmError,
  sleepAtMost,
  UnusableError,
} from '@swefarm/shared';
import { abortOf } from './active.ts';
import { commitAttempt } from './commitresult.ts';
import { type AfterAttempt, type AttemptContext, DONE, ignoreIfEnded, Trace } from './context.ts';
import { attemptEnd, endAttempt, handBack, putOff, storeWork } from './endattempt.ts';

/** Stages after whose failures the next attempt can evaluate the finished work of the agent. */
const RESUMABLE_STAGES: ReadonlySet<FailureStage> = new Set(['evaluation', 'sandbox', 'worker']);
const DISK_STAGES: ReadonlySet<FailureStage> = new Set(['image', 'sandbox', 'evaluation']);
/** Class of instance failures that a stopping or full node can also cause. */
const BY_NODE: FailureClass = 'setup_failed';

/** Maximum time by which a sandbox receives the scheduler's signal earlier than this worker. */
const STOP_SIGNAL_DELAY_MS = 300;
const FAILURE_LENGTH = 400;

/** @param running the rollout, which may still be removing its containers */
export async function afterFailure(
  context: AttemptContext,
  error: unknown,
  running: Promise<unknown>,
): Promise<AfterAttempt> {
  const aborted = abortOf(context.signal);
  if (aborted?.kind === 'cancelled')
    return commitAttempt(context, { outcome: 'cancelled', cancelReason: aborted.cancelReason });
  if (aborted?.kind === 'superseded') return leaveToOther(context);
  if (aborted?.kind === 'drain') return handBack(context, running);
  if (error instanceof UnusableError && refusedByRedis(error)) return putOff(context, error);
  const failure = await failureOf(error, context);
  // A batch scheduler signals every process of a job, including sandboxes. The resulting failures do not count against the rollout.
  if (failure.stage !== 'instance' || failure.failureClass === BY_NODE) {
    const { stop } = context.services;
    await sleepAtMost(STOP_SIGNAL_DELAY_MS, stop);
    if (stop.aborted) return handBack(context, running);
  }
  const { job, instance, services } = context;
  if ('value' in instance) {
    const sample = { run: job.run_id, instance: job.instance_id, image: instance.value.image };
    services.breaker.failed(failure.failureClass, errorMessage(failure).slice(0, 200), sample);
  }
  return retryOrGiveUp(context, failure);
}

/** Records the end of the attempt, so that it does not count as a crash. The turn record now belongs to the other attempt. */
async function leaveToOther(context: AttemptContext): Promise<AfterAttempt> {
  await context.turns.close(true);
  const ended = endAttempt(context, attemptEnd.drained('another attempt has it'));
  await ended.catch(ignoreIfEnded(context));
  context.services.metrics.attempts.inc({ class: 'drained' });
  return DONE;
}

async function failureOf(error: unknown, { services, log }: AttemptContext): Promise<RolloutFailure> {
  if (error instanceof RolloutFailure) {
    // A full disk causes many different errors; all of them are retried on another node.
    const byDisk =
      (DISK_STAGES.has(error.stage) || error.failureClass === BY_NODE) &&
      (await diskIsFull(services.runtime));
    return byDisk ? new RolloutFailure('node_disk', error.message, { cause: error }) : error;
  }
  if (error instanceof SwefarmError && error.code === 'instance_invalid')
    return new RolloutFailure('instance_invalid', error.message, { cause: error });
  log.error({ err: error }, 'attempt failed by an unforeseen error: a bug of the farm');
  return new RolloutFailure('bug', errorMessage(error), { cause: error });
}

async function retryOrGiveUp(context: AttemptContext, failure: RolloutFailure): Promise<AfterAttempt> {
  const { attempt, claim, previous, services, log, signal } = context;
  const { stage, failureClass } = failure;
  const end = attemptEnd.failed({ stage, class: failureClass, message: errorMessage(failure) });
  const now = services.farm.clock.now();
  const entry: JournalEntry = { attempt, claim, ...services.identity, claimed_at: now, ended_at: now, end };
  const decision = services.decide([...previous, entry]);
  if (decision.action === 'run') {
    const isResumable = RESUMABLE_STAGES.has(stage) || failureClass === BY_NODE;
    const stored = isResumable ? await storeWork(context) : await context.turns.close();
    await endAttempt(context, { ...end, ...stored });
    services.metrics.attempts.inc({ class: failureClass });
    const again = { stage, failure: `${stage}/${failureClass}`, again_in_ms: decision.delayMs };
    log.warn(again, end.cause ?? '');
    return { next: 'later', delayMs: decision.delayMs, anywhere: true };
  }
  const message = errorMessage(failure).slice(0, FAILURE_LENGTH);
  try {
    return await commitAttempt(context, { outcome: 'failed', failure: { ...decision.failure, message } });
  } catch (storeError) {
    if (storeError === abortOf(signal)) throw storeError;
    // A result without an artifact is better than no result.
    log.warn({ err: errorMessage(storeError) }, 'artifact not stored: committing the failure without it');
    Object.assign(context.trace, new Trace());
    return commitAttempt(context, { outcome: 'failed', failure: decision.failure });
  }
}
