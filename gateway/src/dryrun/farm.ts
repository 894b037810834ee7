/** The farm of a gateway in a dry run: it marks every run, and refuses instances of which no rollout is stored. */
import { DRY_RUNS, type Farm, type Instance, type RunRecord } from '@swefarm/shared';
import { Refusal } from '../access/refusal.ts';

/** `stored`: ids of the instances that have rollouts; null: any instance is allowed. */
export function dryRunFarm(farm: Farm, stored: ReadonlySet<string> | null): Farm {
  const requireStored = ({ instance_id: id }: Instance): void => {
    if (stored === null || stored.has(id)) return;
    const some = [...stored].slice(0, 3).join(', ');
    throw new Refusal(
      422,
      'not_stored',
      `instance_id: this is a dry run without a stored rollout of ${id}; stored are ${stored.size} instances (${some}, …): add an output to serve --replay, or use --replay-any`,
      { field: 'instance_id' },
    );
  };
  const marked = (record: RunRecord): RunRecord => ({
    ...record,
    needs: Math.max(record.needs, DRY_RUNS),
    dry_run: true,
  });
  return {
    ...farm,
    // The endpoints of the policy are never asked.
    probes: { ...farm.probes, claim: async () => false },
    runs: {
      ...farm.runs,
      async create(record, instances, patches) {
        if (Array.isArray(instances)) instances.forEach(requireStored);
        await farm.runs.create(marked(record), instances, patches);
      },
      async append(runId, instance) {
        requireStored(instance);
        return await farm.runs.append(runId, instance);
      },
    },
    [Symbol.asyncDispose]: () => farm[Symbol.asyncDispose](),
  };
}
