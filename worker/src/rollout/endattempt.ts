/** Ends an attempt in the journal. An attempt without a result is handed back to the queue, or put off because Redis refused a command. */
import {
  type AttemptEnd,
  errorMessage,
  type Failure,
  type UnusableError,
  withoutMiddle,
} from '@swefarm/shared';
import { abortOf } from './active.ts';
import { storeResumableWork } from './artifact.ts';
import type { AfterAttempt, AttemptContext } from './context.ts';
import { retryUntilAnswered, untilTakenOver } from './untilanswered.ts';

const PUT_OFF_MS = 2_000;
/** Maximum characters of a cause in the journal. */
const CAUSE_LENGTH = 200;

const causeOf = (text: string | null): string | null => text && withoutMiddle(text, CAUSE_LENGTH);

export const attemptEnd = {
  /** End of an attempt whose rollout has a result; `isFirst`: this attempt committed it. */
  done: (isFirst: boolean): AttemptEnd => ({
    stage: null,
    class: 'done',
    cause: isFirst ? null : 'late: another attempt was first',
  }),
  /** End of an attempt that costs the rollout none of its budgets. */
  drained: (cause: string | null): AttemptEnd => ({ stage: null, class: 'drained', cause: causeOf(cause) }),
  failed: ({ stage, class: failureClass, message }: Omit<Failure, 'attempts'>): AttemptEnd => ({
    stage,
    class: failureClass,
    cause: causeOf(message),
  }),
};

export async function endAttempt(
  context: AttemptContext,
  end: AttemptEnd,
  how = untilTakenOver(context),
): Promise<void> {
  const { job, claim, services } = context;
  const write = () => services.farm.journal.end(job.rollout_id, claim, end);
  await retryUntilAnswered('end of attempt', write, how);
}

/** Ends the attempt at no cost and returns its job to the queue. `running` is the rollout, which may still be removing its containers. */
export async function handBack(context: AttemptContext, running: Promise<unknown>): Promise<AfterAttempt> {
  await endDrained(context, abortOf(context.signal)?.why ?? null);
  return { next: 'hand_back', gone: Promise.allSettled([running]).then(() => undefined) };
}

/** Ends an attempt at no cost because Redis refused a command; the rollout is retried soon. */
export async function putOff(context: AttemptContext, refusal: UnusableError): Promise<AfterAttempt> {
  context.log.warn({ err: errorMessage(refusal) }, 'rollout put off: Redis refused a command');
  await endDrained(context, errorMessage(refusal));
  return { next: 'later', delayMs: PUT_OFF_MS };
}

/** Stores what the next attempt can use, and returns the fields of the journal that name it. Finished work replaces the turn record. */
export async function storeWork(
  context: AttemptContext,
  how = untilTakenOver(context),
): Promise<Pick<AttemptEnd, 'kept' | 'turns' | 'replay'>> {
  const recorded = await context.turns.close();
  const stored = await storeResumableWork(context, how);
  return stored.kept ? stored : recorded;
}

/** Retries until Redis accepts the end or the worker exits. */
async function endDrained(context: AttemptContext, cause: string | null): Promise<void> {
  context.services.metrics.attempts.inc({ class: 'drained' });
  const how = { log: context.log };
  await endAttempt(context, { ...attemptEnd.drained(cause), ...(await storeWork(context, how)) }, how);
}
