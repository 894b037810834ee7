/** Reads the rollouts that a report counts: lines of outputs in any format, or the results of a run in Redis. */
import { createReadStream } from 'node:fs';
import { type Farm, type RunRecord, type UnreadableResult, UsageError } from '@swefarm/shared';
import { parseJsonLines } from '../datasets/jsonl.ts';
import { RESULT_FORMATS } from '../formats/registry.ts';
import { readOutputRun } from '../output/output.ts';
import type { RolloutFact } from '../output/profile.ts';
import { factOf, type LineFacts } from './facts.ts';

/** `record` null: the number of expected rollouts is unknown. */
export type CountedRollouts = {
  rollouts: Map<string, RolloutFact>;
  record: RunRecord | null;
  /** Results that are not counted because they cannot be read. */
  unreadable: readonly UnreadableResult[];
};

/** Throws UsageError when the file cannot be read or is not an output. */
export async function countOutput(path: string): Promise<CountedRollouts> {
  const run = await readOutputRun(path);
  const rollouts = new Map<string, RolloutFact>();
  for (const file of RESULT_FORMATS[run?.rows ?? 'swefarm'].rowFiles(path)) {
    try {
      for await (const read of parseJsonLines(createReadStream(file))) {
        const row = 'value' in read ? read.value : {};
        const line = (row.swefarm ?? row) as Partial<LineFacts>;
        if (typeof line.rollout_id !== 'string') {
          throw new UsageError(`${file}: ${read.where} is no line of an output; choose another file`);
        }
        rollouts.set(line.rollout_id, factOf(line as LineFacts));
      }
    } catch (error) {
      if (error instanceof UsageError) throw error;
      throw new UsageError(`${file}: cannot be read: ${(error as Error).message}`, { cause: error });
    }
  }
  return { rollouts, record: run?.record ?? null, unreadable: [] };
}

/** Throws UsageError when the farm does not know the run. */
export async function countRun(farm: Farm, runId: string): Promise<CountedRollouts> {
  const record = await farm.runs.get(runId);
  if (!record) {
    throw new UsageError(
      `${runId}: neither a file nor a run at ${farm.address}; swefarm status lists the runs there are`,
    );
  }
  const repositories = new Map<string, string>();
  const rollouts = new Map<string, RolloutFact>();
  const unreadable: UnreadableResult[] = [];
  for (let cursor = '0'; ; ) {
    const batch = await farm.results.read(runId, cursor);
    unreadable.push(...batch.unreadable);
    if (batch.results.length + batch.unreadable.length === 0) return { rollouts, record, unreadable };
    for (const { result } of batch.results) {
      const { instance_id: id } = result;
      if (!repositories.has(id)) {
        const instance = await farm.runs.getInstance(runId, id);
        if (instance) repositories.set(id, instance.repo);
      }
      rollouts.set(result.rollout_id, factOf(result, repositories.get(id)));
    }
    cursor = batch.last_id;
  }
}
