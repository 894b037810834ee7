/** How an attempt that has no result gives its rollout back, and what the journal says of its end. */
import {
  type AttemptEnd,
  errorMessage,
  type Instance,
  type JournalEntry,
  type Log,
  type Read,
  type RolloutJob,
  type RunRecord,
  type UnusableError,
} from '@swefarm/shared';
import type { Node } from '../node/node.ts';
import { abortOf } from './abort.ts';
import { storeResumableWork } from './commitresult.ts';
import type { LiveTrace } from './live.ts';
import { resumableWork } from './resume.ts';
import type { StageClock } from './stages.ts';
import type { Trace } from './task.ts';
import { type AnswerWait, retryUntilAnswered } from './untilanswered.ts';

/** How long a rollout that Redis refused waits for another attempt. */
const PUT_OFF_MS = 2_000;

/** What `pull.ts` does with the job. */
export type AfterAttempt =
  | { next: 'done' }
  /**
   * `anywhere`: it failed here, or may not run here, so whoever claims it next runs it. `notOurs`: why only another version may
   * work on it; nothing was claimed. `passed`: the claim of an attempt of another worker that may come back for it meanwhile.
   */
  | { next: 'later'; delayMs: number; anywhere?: true; notOurs?: string; passed?: string }
  /** Somebody else is to have it at once; `gone` resolves when nothing of it is left on this node. */
  | { next: 'hand_back'; gone: Promise<void> };

export type ClaimedRollout = {
  job: RolloutJob;
  attempt: number;
  /** The nonce of its claim. */
  claim: string;
  previous: JournalEntry[];
  run: RunRecord;
  instance: Read<Instance>;
};

/** One attempt that has been claimed, from then to its end. */
export type AttemptContext = {
  claimed: ClaimedRollout;
  node: Node;
  clock: StageClock;
  live: LiveTrace;
  log: Log;
  trace: Trace;
  signal: AbortSignal;
};

/** At no cost to the rollout's budgets. */
export async function handBack(context: AttemptContext, running: Promise<unknown>): Promise<AfterAttempt> {
  await giveBack(context, abortOf(context.signal)?.why ?? null);
  return { next: 'hand_back', gone: running.then(nothing, nothing) };
}

/** Redis refused what the rollout needed of it: no failure of anybody's work, and Redis is asked again before anybody has it. */
export async function putOff(context: AttemptContext, refusal: UnusableError): Promise<AfterAttempt> {
  context.log.warn({ err: errorMessage(refusal) }, 'Redis refused this rollout; it is put off');
  await giveBack(context, errorMessage(refusal).slice(0, 200));
  return { next: 'later', delayMs: PUT_OFF_MS };
}

/** Waits for Redis as long as the worker itself does: its end is the only one left. */
async function giveBack(context: AttemptContext, cause: string | null): Promise<void> {
  context.node.metrics.attempts.inc({ class: 'drained' });
  const waiting = { log: context.log };
  const kept = await storeWorkOfAttempt(context, waiting);
  await endAttempt(context, { ...{ stage: null, class: 'drained', cause }, ...kept }, waiting);
}

/** Until another worker has the rollout, or this one is to go. */
export const patiently = ({ log, signal }: AttemptContext): AnswerWait => ({
  ...{ log, signal },
  endedBy: ['superseded', 'drain'],
});

export async function endAttempt(
  context: AttemptContext,
  end: AttemptEnd,
  how = patiently(context),
): Promise<void> {
  const { claimed, node } = context;
  await retryUntilAnswered(
    'end of attempt',
    () => node.farm.journal.end(claimed.job.rollout_id, claimed.claim, end),
    how,
  );
}

/** Errors of an attempt that was ended from outside are none. */
export const unlessOver =
  ({ signal }: AttemptContext) =>
  (error: unknown): void => {
    if (error !== abortOf(signal)) throw error;
  };

/** What the journal says of work that the next attempt need not do again. */
export async function storeWorkOfAttempt(
  context: AttemptContext,
  how = patiently(context),
): Promise<{ kept?: string }> {
  const { claimed, node, trace, clock } = context;
  const work = resumableWork(trace, clock);
  const of = { ...claimed, trace };
  const kept = work && (await storeResumableWork(of, work, node, how));
  return kept ? { kept } : {};
}

const nothing = (): void => undefined;
