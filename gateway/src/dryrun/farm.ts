/** The farm of a gateway in a dry run: it marks every run, and refuses instances of which no rollout is stored. */
import { DRY_RUNS, type Farm, Instance, type RunRecord } from '@swefarm/shared';
import { Refusal } from '../access/refusal.ts';

/** The instances that callers may name by their id. `set` adds rows of a dataset, which need not have a stored rollout. */
export class StoredInstances extends Map<string, Instance> {
  readonly #stored: ReadonlySet<string>;
  readonly #any: boolean;

  /** `families`: by id of the instances with stored rollouts. `any`: the others are answered too. */
  constructor(families: ReadonlyMap<string, Instance['family'] | undefined>, any: boolean) {
    super([...families].map(([id, family]) => [id, instanceOf(id, family)]));
    this.#stored = new Set(families.keys());
    this.#any = any;
  }

  /** Throws Refusal `not_stored` for an instance without a stored rollout, unless any instance is answered. */
  override get(id: string): Instance | undefined {
    this.require(id);
    const known = super.get(id);
    return known ?? (Instance.shape.instance_id.safeParse(id).success ? instanceOf(id) : undefined);
  }

  /** Throws Refusal as {@link get}. */
  require(id: string): void {
    if (this.#any || this.#stored.has(id)) return;
    const some = [...this.#stored].slice(0, 3).join(', ');
    throw new Refusal(
      422,
      'not_stored',
      `instance_id: this dry run has no stored rollout of ${id}, but of ${this.#stored.size} instances (${some}, …): add an output to serve --replay, or use --replay-any`,
      { field: 'instance_id' },
    );
  }
}

/** Returns an instance whose texts are empty, because no model reads them. */
const instanceOf = (instance_id: string, family: Instance['family'] = 'custom'): Instance =>
  Instance.parse({
    ...{ instance_id, family, repo: 'dry/run', base_commit: '', problem_statement: '', image: '' },
    ...{ FAIL_TO_PASS: [], PASS_TO_PASS: [] },
  });

/** Returns the farm with runs of the dry run only. Its runs throw the Refusal of {@link StoredInstances}. */
export function dryRunFarm(farm: Farm, stored: StoredInstances): Farm {
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
        if (Array.isArray(instances)) for (const one of instances) stored.require(one.instance_id);
        await farm.runs.create(marked(record), instances, patches);
      },
      async append(runId, instance) {
        stored.require(instance.instance_id);
        return await farm.runs.append(runId, instance);
      },
    },
  };
}
