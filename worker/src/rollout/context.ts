/** One attempt from its claim to its end, and what becomes of its job. */
import type { Instance, JournalEntry, Log, Read, RolloutJob, RunRecord } from '@swefarm/shared';
import { abortOf } from './abort.ts';
import type { LiveTrace } from './live.ts';
import type { AttemptServices } from './services.ts';
import type { StageClock } from './stages.ts';
import type { Trace } from './task.ts';
import type { AnswerWait } from './untilanswered.ts';

/** What the puller does with the job. */
export type AfterAttempt =
  | { next: 'done' }
  /**
   * `anywhere`: it failed here, or may not run here, so whoever claims it next runs it. `notOurs`: why only another version may
   * work on it; nothing was claimed. `passed`: the claim of an attempt of another worker that may come back for it meanwhile.
   */
  | { next: 'later'; delayMs: number; anywhere?: true; notOurs?: string; passed?: string }
  /** Another worker is to have it at once; `gone` resolves when nothing of it is left on this node. */
  | { next: 'hand_back'; gone: Promise<void> };

export const DONE: AfterAttempt = { next: 'done' };
/** Of a job that nothing was started for. */
export const HAND_BACK: AfterAttempt = { next: 'hand_back', gone: Promise.resolve() };

export type ClaimedRollout = {
  job: RolloutJob;
  attempt: number;
  /** The nonce of its claim. */
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

/** Redis is asked until another worker has the rollout, or this one is to go. */
export const untilTakenOver = ({ log, signal }: AttemptContext): AnswerWait => ({
  log,
  signal,
  endedBy: ['superseded', 'drain'],
});

/** For `catch`: the error by which an attempt was ended from outside is none; others are thrown on. */
export const ignoreIfEnded =
  ({ signal }: AttemptContext) =>
  (error: unknown): void => {
    if (error !== abortOf(signal)) throw error;
  };
