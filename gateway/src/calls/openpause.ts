/** Refuses calls of an open run that is paused because its tool calls are unreadable. */
import { type Farm, type RunRecord, resumeRun } from '@swefarm/shared';
import { Refusal } from '../access/refusal.ts';

/** Throws Refusal 503 `calls_unread` during an automatic pause, and resumes the run after the pause. A manual pause refuses no call. */
export async function requireUnpaused(farm: Farm, { run_id: runId }: RunRecord): Promise<void> {
  const pause = await farm.groups.paused(runId);
  if (!pause || pause.reason === null || pause.ends_at === undefined) return;
  const leftMs = pause.ends_at - (await farm.clock.ask());
  if (leftMs <= 0) return await resumeRun(farm, runId);
  const seconds = Math.ceil(leftMs / 1000);
  const message = `run ${runId} of this caller is paused for another ${seconds} s: ${pause.reason}`;
  throw new Refusal(503, 'calls_unread', message, { retryAfterSeconds: seconds });
}
