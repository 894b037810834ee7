/** The farm of a gateway in a dry run. It marks every run, and refuses instances without a stored rollout. */
import { DRY_RUNS, type Farm, Instance, type RunRecord } from '@swefarm/shared';
import { Refusal } from '../access/refusal.ts';

/** The instances that callers may name by id. `set` adds rows of a dataset, with or without stored rollouts. */
export class StoredInstances extends Map<string, Instance> {
  readonly #stored: ReadonlySet<string>;
  readonly #any: boolean;

  /** `families`: families of the instances with stored rollouts, by id. `any`: also accepts other instances. */
  constructor(families: ReadonlyMap<string, Instance['family'] | undefined>, any: boolean) {
    super([...families].map(([id, family]) => [id, instanceOf(id, family)]));
    this.#stored = new Set(families.keys());
    this.#any = any;
  }

  /** Returns the instance. Throws Refusal `not_stored` if it has no stored rollout and `any` is false. */
  override get(id: string): Instance | undefined {
    this.require(id);
    const known = super.get(id);
    return known ?? (Instance.shape.instance_id.safeParse(id).success ? instanceOf(id) : undefined);
  }

  /** Throws Refusal `not_stored` as {@link get}. */
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

/** Returns an instance with empty texts, because no model reads them. */
const instanceOf = (instance_id: string, family: Instance['family'] = 'custom'): Instance =>
  Instance.parse({
    ...{ instance_id, family, repo: 'dry/run', base_commit: '', problem_statement: '', image: '' },
    ...{ FAIL_TO_PASS: [], PASS_TO_PASS: [] },
  });

/** Returns the farm for dry runs: it marks each run, and throws the Refusal of {@link StoredInstances}. */
export function dryRunFarm(farm: Farm, stored: StoredInstances): Farm {
  const marked = (record: RunRecord): RunRecord => ({
    ...record,
    needs: Math.max(record.needs, DRY_RUNS),
    dry_run: true,
  });
  return {
    ...farm,
    // A dry run sends no request to the endpoints of the policy.
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
