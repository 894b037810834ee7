/** Resumes a paused run. Failures before this time do not pause the run again. */
import type { Farm } from './farm.ts';

export async function resumeRun(farm: Pick<Farm, 'groups' | 'results'>, runId: string): Promise<void> {
  const { committed, failures, answers, unread } = await farm.results.counts(runId);
  await farm.groups.resume(runId, { committed, failures, answers, unread });
}
