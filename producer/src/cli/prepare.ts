/** Reads the dataset of `submit` and `rollout`, and makes the record of the run. A resumed run must have the same settings. */
import type { Dataset } from '@swefarm/datasets';
import {
  addKnownHealth,
  asTree,
  newRunRecord,
  notesOnMini,
  readPatches,
  readRegistry,
  registryPath,
  requireSameSettings,
  runSettings,
  withShownPictures,
} from '@swefarm/runs';
import type { ProducerConfig } from '@swefarm/shared';
import {
  AGENTS,
  type Farm,
  type KnownHistory,
  originsOf,
  type PolicyKey,
  type RunRecord,
  type Secret,
  UsageError,
} from '@swefarm/shared';
import { withPrice } from '@swefarm/trajectories';
import { type CollectionValues, queuesAsNeeded, readPrice } from './collection.ts';
import type { Values } from './declare.ts';
import { apiKeyOf, type DATASET, datasetOf, type FARM, type RUN } from './options.ts';
import { printStatus } from './terminal.ts';

export type PrepareValues = Values<typeof DATASET & typeof RUN & typeof FARM>;

export type PreparedRun = {
  dataset: Dataset;
  /** Record of the run: the stored record of a resumed run, else a new record. */
  record: RunRecord;
  patches: ReadonlyMap<string, readonly string[]> | undefined;
  apiKey: PolicyKey | null;
  /** Minimum number of judged rollouts in a group: the value of this command, else of the stored run. */
  minGroup: number | undefined;
  /** History of the instances; absent: it was not read. */
  known?: KnownHistory | undefined;
};

/** Reads and checks flags, files and rows without changing anything. Throws UsageError. */
export async function prepareRun(
  o: PrepareValues & Partial<CollectionValues>,
  config: ProducerConfig,
  stored: RunRecord | null,
  signal: AbortSignal,
): Promise<PreparedRun> {
  const dataset = await addHealth(await datasetOf(o, signal), o, config);
  const secret = apiKeyOf(o.apiKeyEnv, config.policy_api_key);
  const wanted = newRunRecord({ dataset, flags: o.run, configFile: o.runConfig }, secret !== null);
  const { agent } = runSettings({ flags: o.run, configFile: o.runConfig });
  for (const note of notesOnMini(asTree(agent))) printStatus(`swefarm: ${note}`);
  if (stored) requireSameSettings(stored, wanted);
  const price = readPrice(o, config, wanted);
  // The order of an earlier output wins over the farm's history.
  const order = o.longestFirst === undefined ? wanted.order : 'given';
  const record = stored ?? withPrice({ ...wanted, order }, price);
  if (config.prices !== null && price === null && record.policy !== null)
    printStatus(
      `swefarm: ${config.prices} has no price of the model ${record.policy.model}: costs are unknown`,
    );
  if (queuesAsNeeded(o) && (record.refills + record.oversample > 0 || record.until !== null)) {
    throw new UsageError(
      '--refills, --oversample and --until-groups decide themselves what runs; they do not go with a budget, --until-resolved or --again',
    );
  }
  const instances = withShownPictures(record, dataset.instances);
  if (AGENTS[record.agent.type].needsPatches !== (o.patches !== undefined)) {
    throw new UsageError('--agent patch and --patches FILE go together: give both or neither');
  }
  const patches =
    o.patches === undefined ? undefined : await readPatches(o.patches, dataset.instances, signal);
  const apiKey = secret && bindKey(secret, record, config);
  const minGroup = wanted.min_group ?? record.min_group ?? undefined;
  return { dataset: { ...dataset, instances }, record, patches, apiKey, minGroup };
}

/** Binds the key to the endpoints of run and configuration, not to those of a registered policy, which others can change. */
function bindKey(secret: Secret, { policy }: RunRecord, config: ProducerConfig): PolicyKey | null {
  if (policy === null) return null;
  const origins = [...new Set([...originsOf(policy.urls), ...config.policy_api_key_origins])];
  if (origins.length > 0) return { secret, origins };
  throw new UsageError(
    `the key of the policy must be for some endpoint: name the endpoints of policy ${policy.name} with --policy-url, or their origins with SWEFARM_POLICY_API_KEY_ORIGINS (http://host:port), or give no key (--api-key-env, SWEFARM_POLICY_API_KEY, OPENAI_API_KEY)`,
  );
}

/** Adds the findings of `swefarm health` to the instances. Prints the broken instances; --skip-broken also removes them. */
async function addHealth(
  dataset: Dataset,
  { health, skipBroken: skip }: PrepareValues,
  config: ProducerConfig,
): Promise<Dataset> {
  const path = registryPath(health, config.state_dir);
  const known = addKnownHealth(dataset, await readRegistry(path), skip);
  if (known.broken.size > 0) {
    const all = [...known.broken].map(([id, reason]) => `${id}: ${reason}`);
    const shown = all.slice(0, 5).concat(all.length > 5 ? [`… (${all.length})`] : []);
    const done = skip ? 'left out' : 'known to be broken (leave them out with --skip-broken)';
    printStatus(
      `swefarm: ${all.length} instance${all.length === 1 ? '' : 's'} ${done}, by ${path}:\n  ${shown.join('\n  ')}`,
    );
  }
  if (known.dataset.instances.length > 0) return known.dataset;
  throw new UsageError(
    `--skip-broken leaves no instance: all are broken by ${path}; examine them again with swefarm health`,
  );
}

/** Stores the key in Redis only, under the name in the record. Throws UsageError when the key of a resumed run is gone. */
export async function storeApiKey(farm: Farm, config: ProducerConfig, prepared: PreparedRun): Promise<void> {
  const name = prepared.record.policy?.api_key_ref;
  if (!name) return;
  if (prepared.apiKey) await farm.secrets.put(name, prepared.apiKey, config.policy_api_key_ttl_seconds);
  else if (!(await farm.secrets.get(name))) {
    throw new UsageError(
      'the run was submitted with a key for its policy that is gone from Redis; pass --api-key-env again',
    );
  }
}
