/** An open run whose tool calls cannot be read is paused for a while: its callers are told so, instead of rewards of 0. */
import { type Farm, type RunRecord, resumeRun } from '@swefarm/shared';
import { Refusal } from '../access/refusal.ts';

/** Resumes a run whose pause is over. Throws Refusal 503 `calls_unread` while it lasts; a pause by hand delays calls only. */
export async function requireUnpaused(farm: Farm, { run_id: runId }: RunRecord): Promise<void> {
  const pause = await farm.groups.paused(runId);
  if (!pause || pause.reason === null || pause.ends_at === undefined) return;
  const leftMs = pause.ends_at - (await farm.clock.ask());
  if (leftMs <= 0) return await resumeRun(farm, runId);
  const seconds = Math.ceil(leftMs / 1000);
  const message = `run ${runId} of this caller is paused for ${seconds} s more: ${pause.reason}`;
  throw new Refusal(503, 'calls_unread', message, { retryAfterSeconds: seconds });
}
