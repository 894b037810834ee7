/** Open runs: runs to which calls append rollouts. Each combination of caller and settings has an open run, replaced after a day. */

import { weightWarnings } from '@swefarm/grading';
import {
  agentSettings,
  asTree,
  recordFromSettings,
  requireCountableCost,
  type SettingsTree,
  staleLimitWarning,
  withSets,
  withShownPictures,
} from '@swefarm/runs';
import {
  type Farm,
  type Instance,
  isNotOurs,
  type Log,
  newId,
  type PolicyKey,
  type Price,
  type ProducerConfig,
  RolloutPolicy,
  type RunRecord,
  SwefarmError,
} from '@swefarm/shared';
import { findPrice, NO_PRICE, type Prices, withPrice } from '@swefarm/trajectories';
import type { Caller } from '../access/callers.ts';
import { requireWithinCeilings } from '../access/ceilings.ts';
import { digest } from '../access/digest.ts';
import { storeKey } from '../access/policykeys.ts';
import { requireOpenSettings } from './opensettings.ts';
import { createTtlCache } from './ttlcache.ts';

/** The changes that a row makes to the policy of its run, for this rollout only. `apiKey` belongs to `urls`. */
type OwnPolicy = Omit<RolloutPolicy, 'api_key_ref'> & { apiKey: PolicyKey | null };

export type CallerRun = {
  caller: Caller;
  settings: SettingsTree;
  apiKey: PolicyKey | null;
  own: OwnPolicy | null;
};

/** `instances`: digests of instances that are known to be in the run. */
type KnownRun = { run: Promise<RunRecord>; instances: Set<string> };

/** Age at which a new run replaces an open run. */
const OPEN_SECONDS = 24 * 3600;
const FULL = 'the open run of this caller is full; a new one starts within a day';
const KNOWN_MS = 10 * 60_000;

export class OpenRuns {
  readonly #farm: Farm;
  readonly #config: ProducerConfig;
  readonly #log: Pick<Log, 'warn'>;
  readonly #prices: Prices | null;
  readonly #known = createTtlCache<KnownRun>(KNOWN_MS);

  constructor(farm: Farm, config: ProducerConfig, log: Pick<Log, 'warn'>, prices: Prices | null) {
    this.#prices = prices;
    this.#farm = farm;
    this.#config = config;
    this.#log = log;
  }

  /** Returns a hash of the caller's name, the settings and the policy key. */
  nameOf({ caller, settings, apiKey }: CallerRun): string {
    return digest([caller.name, settings, apiKey && [apiKey.secret.reveal(), apiKey.origins]]);
  }

  /**
   * Returns an open run of these settings that contains the instance. Throws UsageError for invalid settings, Refusal 422 `over_ceiling`,
   * SwefarmError `run_full`.
   */
  async find(caller: CallerRun, given: Instance): Promise<RunRecord> {
    const callerRun = withSetsOf(caller, given);
    const row = digest(given);
    const price = this.#priceOf(asTree(callerRun.settings.policy).model);
    // A new price starts a new run but keeps the identity of calls. A row without endpoints must not use the endpoints of another row.
    const more = [...(price ? [price] : []), ...(lacksEndpoints(callerRun) ? ['endpoints of rows'] : [])];
    const name = more.length > 0 ? digest([this.nameOf(callerRun), ...more]) : this.nameOf(callerRun);
    // If the run contains another row with the same instance id, the instance goes to a second run.
    for (const runName of [name, digest([name, row])]) {
      const { run: reading, instances } = this.#knownRun(runName, callerRun);
      const run = await reading;
      if (instances.has(row)) return run;
      const [instance = given] = withShownPictures(run, [given]);
      const appended = await this.#farm.runs.append(run.run_id, instance);
      if (appended === 'appended') {
        instances.add(row);
        return run;
      }
      if (appended === 'full') throw new SwefarmError('run_full', FULL, { retryable: true });
      if (appended === 'gone') {
        this.#known.delete(runName);
        return await this.find(callerRun, given);
      }
    }
    throw new Error(`no run takes instance ${given.instance_id}`);
  }

  /** Stores the key of a rollout's own endpoints. Returns the rollout's changes to the policy of its run; null: no changes. */
  async ownPolicy({ own }: CallerRun): Promise<RolloutPolicy | null> {
    if (own === null) return null;
    const { apiKey, ...changes } = own;
    const seconds = this.#config.policy_api_key_ttl_seconds;
    // Parsing fails here rather than in a worker that queues or plays the rollout.
    return RolloutPolicy.parse({ ...changes, api_key_ref: await storeKey(this.#farm, apiKey, seconds) });
  }

  /** Removes an expired run from the cache. */
  forget(runId: string): void {
    for (const [name, { run }] of this.#known.entries()) {
      run.then(
        (record) => {
          if (record.run_id === runId) this.#known.delete(name);
        },
        () => undefined,
      );
    }
  }

  #priceOf(model: unknown): Price | null {
    return this.#prices && typeof model === 'string' ? findPrice(this.#prices, model) : null;
  }

  #warnOfPrice({ name }: Caller, { run_id: run, policy }: RunRecord): void {
    if (this.#prices === null || policy === null || policy.price) return;
    this.#log.warn({ caller: name, run, model: policy.model }, NO_PRICE);
  }

  #knownRun(name: string, callerRun: CallerRun): KnownRun {
    const known = this.#known.get(name);
    if (known) return known;
    const run = this.#findOrCreate(name, callerRun);
    const entry = { run, instances: new Set<string>() };
    this.#known.set(name, entry);
    run.catch(() => this.#known.delete(name));
    return entry;
  }

  async #findOrCreate(name: string, callerRun: CallerRun): Promise<RunRecord> {
    const farm = this.#farm;
    const earlier = await farm.runs.getOpen(name);
    const record = earlier === null ? null : await readRun(farm, earlier);
    // A newer version wrote the record, or the record is damaged: this version creates another run.
    if (record === 'not_ours') return await this.#findOrCreate(digest([name, earlier]), callerRun);
    const keyRef = await storeKey(farm, callerRun.apiKey, this.#config.policy_api_key_ttl_seconds);
    if (record) {
      requireWithinCeilings(record, this.#config, '');
      return record;
    }
    const created = await this.#create(callerRun, keyRef);
    const winner = await farm.runs.setOpen(name, created.run_id, OPEN_SECONDS);
    if (winner === created.run_id) return created;
    await farm.runs.remove(created.run_id);
    return (await farm.runs.get(winner)) ?? (await this.#findOrCreate(name, callerRun));
  }

  async #create(callerRun: CallerRun, keyRef: string | null): Promise<RunRecord> {
    const { caller } = callerRun;
    const settings = withSomeEndpoint(callerRun);
    requireOpenSettings(`caller ${caller.name}`, settings);
    const dataset = { path: `calls of ${caller.name}`, sha256: '', instances: [] };
    const described = { ...recordFromSettings(settings, newId(), dataset, keyRef), open: true };
    const record = withPrice(described, this.#priceOf(described.policy?.model));
    this.#warnOfPrice(caller, record);
    requireCountableCost(record);
    requireWithinCeilings(record, this.#config, '');
    const idle = await staleLimitWarning(record, this.#farm);
    for (const warning of [...(idle ? [idle] : []), ...weightWarnings(record.reward.weights)])
      this.#log.warn({ caller: caller.name, run: record.run_id }, warning);
    await this.#farm.runs.create(record, []);
    return record;
  }
}

/** Returns the settings with the shipped sets that the row names. They are a part of the settings, so the row gets a run that has them. */
function withSetsOf(callerRun: CallerRun, instance: Instance): CallerRun {
  if (instance.prompts === undefined && instance.toolset === undefined) return callerRun;
  const { agent, ...others } = callerRun.settings;
  return {
    ...callerRun,
    settings: { ...others, agent: withSets(agentSettings(asTree(agent)), [instance]) },
  };
}

/** Returns whether the only endpoints are the row's own, which apply to its rollout alone. */
function lacksEndpoints({ settings, own }: CallerRun): boolean {
  const policy = asTree(settings.policy);
  return own?.urls != null && policy.urls === undefined && !policy.name;
}

/** Returns the settings. If neither the operator nor the rows name endpoints for the whole run, adds the endpoints of the first row. */
function withSomeEndpoint(callerRun: CallerRun): SettingsTree {
  const { settings, own } = callerRun;
  if (!lacksEndpoints(callerRun)) return settings;
  return { ...settings, policy: { ...asTree(settings.policy), urls: own?.urls } };
}

async function readRun(farm: Farm, runId: string): Promise<RunRecord | null | 'not_ours'> {
  try {
    return await farm.runs.get(runId);
  } catch (error) {
    if (isNotOurs(error)) return 'not_ours';
    throw error;
  }
}
