/** Reads the rollouts that `report` and `compare` count, from output files and from runs in Redis. */
import { existsSync } from 'node:fs';
import { describeUnreadable, openFarm, type RunRecord, UsageError } from '@swefarm/shared';
import { countOutput, countRun, type LineFact, type PriceFile, Replacements } from '@swefarm/trajectories';
import { priceFileOf } from './collection.ts';
import { type FarmValues, producerConfig } from './options.ts';
import { printStatus } from './terminal.ts';

export type CountedAll = {
  /** Each rollout once, without those that a later rollout replaces. */
  rollouts: LineFact[];
  records: RunRecord[];
  /** Whether the records of all sources are known. */
  known: boolean;
  /** Names of the sources in which a success ended the rollouts of an instance. */
  untilResolved: string[];
};

/** Reads output files and runs, counted as one. Throws UsageError for a source that does not exist. */
export async function countAll(names: readonly string[], o: FarmValues): Promise<CountedAll> {
  const rollouts = new Map<string, LineFact>();
  const records = new Map<string, RunRecord>();
  const prices = priceFileOf(o, producerConfig(o));
  const untilResolved: string[] = [];
  let known = true;
  for (const name of names) {
    const counted = existsSync(name) ? await countOutput(name, prices) : await fromFarm(name, o, prices);
    if (counted.untilResolved) untilResolved.push(name);
    for (const [id, fact] of counted.rollouts) rollouts.set(id, fact);
    if (counted.record) records.set(counted.record.run_id, counted.record);
    else known = false;
    for (const entry of counted.unreadable) printStatus(`swefarm: not counted: ${describeUnreadable(entry)}`);
  }
  const replacements = new Replacements();
  for (const fact of rollouts.values()) replacements.note(fact);
  return {
    rollouts: [...rollouts.values()].filter(({ rollout_id: id }) => !replacements.isOutdated(id)),
    records: [...records.values()],
    known,
    untilResolved,
  };
}

async function fromFarm(runId: string, o: FarmValues, prices: PriceFile | null) {
  const config = producerConfig(o);
  if (config.redis_url === null)
    throw new UsageError(`${runId}: no such file; for a run of a farm add its --redis-url`);
  await using farm = await openFarm(config, 'producer');
  return await countRun(farm, runId, prices);
}
