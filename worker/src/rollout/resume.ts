/**
 * Resumable work: if only the evaluation was lost, the agent's work is stored as the attempt's artifact and named in the journal. The next
 * attempt evaluates it without running the agent again.
 */
import { errorMessage, type Farm, type JournalEntry } from '@swefarm/shared';
import type { Logger } from 'pino';
import { abortOf } from './abort.ts';
import type { StageClock } from './stages.ts';
import type { ResumableWork, Trace } from './task.ts';
import { type AnswerWait, retryUntilAnswered } from './untilanswered.ts';

/** Returns the work that a failed attempt leaves for the next one; null when the agent had not ended. */
export function resumableWork(trace: Trace, clock: StageClock): ResumableWork | null {
  if (trace.facts === null || trace.trajectory === null || trace.patch === null) return null;
  // An evaluation that failed has no verdict.
  const facts = { ...trace.facts, evaluation: 'not_run' as const, resolved: null };
  return { facts, patch: trace.patch, trajectory: trace.trajectory, seconds: clock.seconds() };
}

/** Reads the newest stored work; null when there is none or it is unreadable. The agent then works again. */
export async function resumeWork(
  farm: Pick<Farm, 'artifacts'>,
  previous: readonly JournalEntry[],
  how: AnswerWait,
): Promise<ResumableWork | null> {
  const locator = previous.findLast((entry) => entry.end?.kept)?.end?.kept;
  if (!locator) return null;
  try {
    const content = await retryUntilAnswered('stored work', () => farm.artifacts.read(locator), how);
    const { trajectory = null, patch = null, kept: resumable } = content ?? {};
    return trajectory && patch !== null && resumable ? { ...resumable, trajectory, patch } : null;
  } catch (error) {
    if (how.signal && error === abortOf(how.signal)) throw error;
    how.log.warn(
      { kept: locator, err: errorMessage(error) },
      'resumable work unreadable: the agent works again',
    );
    return null;
  }
}

/** Removes stored work when the rollout has its result. If the removal fails, maintenance removes the work. */
export async function dropResumableWork(
  farm: Pick<Farm, 'artifacts'>,
  previous: readonly JournalEntry[],
  log: Logger,
): Promise<void> {
  for (const { end } of previous) {
    if (!end?.kept) continue;
    await farm.artifacts.remove(end.kept).catch((error: unknown) => {
      log.debug({ kept: end.kept, err: errorMessage(error) }, 'resumable work not removed');
    });
  }
}
