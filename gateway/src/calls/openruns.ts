/** The runs that calls are appended to: one per caller and settings, for a day at most, the same after a restart. */

import {
  asTree,
  recordFromSettings,
  type SettingsTree,
  staleLimitWarning,
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

/** The settings of the run that a call's rollout belongs to. */
export type CallerRun = { caller: Caller; settings: SettingsTree; apiKey: PolicyKey | null };

/** `instances`: digests of those that the run has. */
type KnownRun = { run: Promise<RunRecord>; instances: Set<string> };

/** After this a new run begins, so that none grows for ever. */
const OPEN_SECONDS = 24 * 3600;
const FULL =
  'the open run of this caller has as many instances as a run may have; a new one begins within a day';
/** How long this process relies on what it read. */
const KNOWN_MS = 10 * 60_000;

export class OpenRuns {
  readonly #farm: Farm;
  readonly #config: ProducerConfig;
  readonly #log: Pick<Log, 'warn'>;
  readonly #prices: Prices | null;
  readonly #known = createTtlCache<KnownRun>(KNOWN_MS);

  /** `prices`: of models; null when none are known. */
  constructor(farm: Farm, config: ProducerConfig, log: Pick<Log, 'warn'>, prices: Prices | null) {
    this.#prices = prices;
    this.#farm = farm;
    this.#config = config;
    this.#log = log;
  }

  /** What tells this caller's settings from others. */
  nameOf({ caller, settings, apiKey }: CallerRun): string {
    return digest([caller.name, settings, apiKey && [apiKey.secret.reveal(), apiKey.origins]]);
  }

  /** The open run of these settings, which has this instance. Throws UsageError for settings that describe no run. */
  async find(callerRun: CallerRun, given: Instance): Promise<RunRecord> {
    const row = digest(given);
    const price = this.#priceOf(asTree(callerRun.settings.policy).model);
    // With another price another run begins. The calls stay the same ones.
    const name = price ? digest([this.nameOf(callerRun), price]) : this.nameOf(callerRun);
    // Another row under the same id goes to a run of its own.
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

  /** Forgets a run that turned out to be gone. */
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
    // Made by a newer gateway, or damaged: it stays, and calls of this version have another beside it.
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

  async #create({ caller, settings }: CallerRun, keyRef: string | null): Promise<RunRecord> {
    requireOpenSettings(`caller ${caller.name}`, settings);
    const dataset = { path: `calls of ${caller.name}`, sha256: '', instances: [] };
    const described = { ...recordFromSettings(settings, newId(), dataset, keyRef), open: true };
    const record = withPrice(described, this.#priceOf(described.policy?.model));
    this.#warnOfPrice(caller, record);
    requireWithinCeilings(record, this.#config, '');
    const idle = await staleLimitWarning(record, this.#farm);
    if (idle) this.#log.warn({ caller: caller.name, run: record.run_id }, idle);
    await this.#farm.runs.create(record, []);
    return record;
  }
}

async function readRun(farm: Farm, runId: string): Promise<RunRecord | null | 'not_ours'> {
  try {
    return await farm.runs.get(runId);
  } catch (error) {
    if (isNotOurs(error)) return 'not_ours';
    throw error;
  }
}
