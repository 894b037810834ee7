/** Parses a log into a report, in a thread. The patch may have written the log, so an unreadable log gets a verdict and no error. */
import { unreadReport } from '@swefarm/grading';
import { type Report, RolloutFailure, SwefarmError } from '@swefarm/shared';
import type { Threads } from '../threads/pool.ts';
import type { GradeInput } from '../threads/tasks.ts';

const LIMIT_MS = 60_000;

/**
 * Tries twice, the second time with twice the limit. If only an empty log is readable, the log is at fault. Throws RolloutFailure
 * `parse_timeout` when even an empty log takes too long, because then the node is at fault.
 */
export async function readReport(
  evaluation: GradeInput,
  threads: Pick<Threads, 'run'>,
  limitMs = LIMIT_MS,
): Promise<Report> {
  for (const timeoutMs of [limitMs, 2 * limitMs]) {
    const report = await threads.run('grade', evaluation, { timeoutMs }).catch(() => null);
    if (report) return report;
  }
  const empty = { ...evaluation, log: Buffer.alloc(0) };
  const reading = threads.run('grade', empty, { timeoutMs: LIMIT_MS });
  const bare = await reading.catch((error: unknown) => {
    if (error instanceof SwefarmError && error.code === 'thread_timeout') return null;
    throw error;
  });
  if (bare) return unreadReport(bare);
  throw new RolloutFailure(
    'parse_timeout',
    `not even an empty test log could be read in ${LIMIT_MS / 1000} s`,
  );
}
