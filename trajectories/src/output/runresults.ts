/** Reads the results of a run that are in Redis. */
import { type Farm, type Result, type RunRecord, type UnreadableResult, UsageError } from '@swefarm/shared';

/** Returns the record of a run. Throws UsageError when the farm does not know the run. */
export async function requireRun(farm: Farm, runId: string): Promise<RunRecord> {
  const record = await farm.runs.get(runId);
  if (record) return record;
  throw new UsageError(
    `${runId}: neither a file nor a run at ${farm.address}; swefarm status lists all runs`,
  );
}

/** Yields the results of a run in the order of completion. Adds results that cannot be read to `unreadable`. */
export async function* resultsOf(
  farm: Farm,
  runId: string,
  unreadable: UnreadableResult[],
): AsyncGenerator<Result> {
  for (let cursor = '0'; ; ) {
    const batch = await farm.results.read(runId, cursor);
    unreadable.push(...batch.unreadable);
    if (batch.results.length + batch.unreadable.length === 0) return;
    for (const { result } of batch.results) yield result;
    cursor = batch.last_id;
  }
}
