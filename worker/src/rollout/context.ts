/** Data of one attempt from its claim to its end, and what happens to its job afterwards. */
import type { Instance, JournalEntry, Log, Read, RolloutJob, RunRecord } from '@swefarm/shared';
import { abortOf } from './abort.ts';
import type { LiveTrace } from './live.ts';
import type { AttemptServices } from './services.ts';
import type { StageClock } from './stages.ts';
import type { Trace } from './task.ts';
import type { AnswerWait } from './untilanswered.ts';

/** What the puller does with the job after the attempt. */
export type AfterAttempt =
  | { next: 'done' }
  /**
   * `anywhere`: the next worker that claims the job runs it, whatever the image. `notOurs`: why only another version may run the job;
   * nothing was claimed. `passed`: the claim of another worker's attempt; the next claim does not wait for the end of that attempt.
   */
  | { next: 'later'; delayMs: number; anywhere?: true; notOurs?: string; passed?: string }
  /** Another worker may run the job at once. `gone` resolves when nothing of the attempt is left on this node. */
  | { next: 'hand_back'; gone: Promise<void> };

export const DONE: AfterAttempt = { next: 'done' };
/** Returns a job to the queue whose attempt started nothing. */
export const HAND_BACK: AfterAttempt = { next: 'hand_back', gone: Promise.resolve() };

export type ClaimedRollout = {
  job: RolloutJob;
  attempt: number;
  claim: string;
  previous: JournalEntry[];
  run: RunRecord;
  instance: Read<Instance>;
};

export type AttemptContext = {
  claimed: ClaimedRollout;
  services: AttemptServices;
  clock: StageClock;
  live: LiveTrace;
  log: Log;
  trace: Trace;
  signal: AbortSignal;
};

/** Options for retries until another worker claims the rollout or this worker must exit. */
export const untilTakenOver = ({ log, signal }: AttemptContext): AnswerWait => ({
  log,
  signal,
  endedBy: ['superseded', 'drain'],
});

/** Handler for `catch` that ignores the error that ended an attempt from outside, and rethrows all others. */
export const ignoreIfEnded =
  ({ signal }: AttemptContext) =>
  (error: unknown): void => {
    if (error !== abortOf(signal)) throw error;
  };
