/** Reads the rollouts that a report counts: lines of outputs in any format, or the results of a run in Redis. */
import {
  costOf,
  type Farm,
  type Instance,
  type Price,
  type Result,
  type RunRecord,
  type UnreadableResult,
} from '@swefarm/shared';
import { readLines } from '../formats/results.ts';
import { readOutputRun } from '../output/output.ts';
import { requireRun, resultsOf } from '../output/runresults.ts';
import { type PriceFile, priceFor } from '../prices.ts';
import { factOf, type LineFact } from './facts.ts';

/** `record` null: the expected number of rollouts is unknown. `untilResolved`: an instance's rollouts ended at the first success. */
export type CountedRollouts = {
  untilResolved: boolean;
  rollouts: Map<string, LineFact>;
  record: RunRecord | null;
  unreadable: readonly UnreadableResult[];
};

/** Reads an output. `prices` apply to lines without a cost. Throws UsageError when a file cannot be read or is not an output. */
export async function countOutput(path: string, prices: PriceFile | null = null): Promise<CountedRollouts> {
  const run = await readOutputRun(path);
  const price = priceFor(prices, run?.record.policy);
  const rollouts = new Map<string, LineFact>();
  for await (const line of readLines(path)) {
    const fact = factOf(line);
    rollouts.set(line.rollout_id, priced(fact, line.tokens, price));
  }
  return {
    rollouts,
    untilResolved: run?.until_resolved === true,
    record: run?.as_needed === true ? null : (run?.record ?? null),
    unreadable: [],
  };
}

const priced = (fact: LineFact, tokens: Result['tokens'], price: Price | null): LineFact =>
  price && fact.cost === null ? { ...fact, cost: costOf(tokens, price) } : fact;

/** Reads a run in the farm. Throws UsageError when the farm does not know the run. */
export async function countRun(
  farm: Farm,
  runId: string,
  prices: PriceFile | null = null,
): Promise<CountedRollouts> {
  const record = await requireRun(farm, runId);
  const price = priceFor(prices, record.policy);
  const instances = new Map<string, Pick<Instance, 'repo' | 'family'>>();
  const rollouts = new Map<string, LineFact>();
  const unreadable: UnreadableResult[] = [];
  for await (const result of resultsOf(farm, runId, unreadable)) {
    const { instance_id: id } = result;
    if (!instances.has(id)) {
      const instance = await farm.runs.getInstance(runId, id);
      if (instance) instances.set(id, { repo: instance.repo, family: instance.family });
    }
    const { repo, family } = instances.get(id) ?? {};
    const fact = factOf({ ...result, ...(family ? { family } : {}) }, repo);
    rollouts.set(result.rollout_id, priced(fact, result.tokens, price));
  }
  return { rollouts, untilResolved: false, record, unreadable };
}
