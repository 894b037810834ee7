/** The runs that calls are appended to: one per caller and settings, for a day at most, the same after a restart. */
import {
  type Farm,
  type Instance,
  isNotOurs,
  type Log,
  newId,
  type PolicyKey,
  type ProducerConfig,
  type RunRecord,
  SwefarmError,
} from '@swefarm/shared';
import { recordOf, type SettingsTree } from '../../run/record.ts';
import { idleStaleness } from '../../run/staleness.ts';
import type { Caller } from '../access/callers.ts';
import { holdToCeilings } from '../access/ceilings.ts';
import { digest } from '../access/digest.ts';
import { storeKey } from '../access/policykeys.ts';
import { refuseEnding } from './opensettings.ts';
import { createTtlCache } from './ttlcache.ts';

export type CallerRun = { caller: Caller; settings: SettingsTree; apiKey: PolicyKey | null };

export type OpenRuns = {
  /** What tells this caller's settings from others. */
  nameOf(wish: CallerRun): string;
  /** The open run of these settings, holding this instance. Throws UsageError for settings that describe no run. */
  find(wish: CallerRun, instance: Instance): Promise<RunRecord>;
  /** Forgets a run that turned out to be gone. */
  forget(runId: string): void;
};

/** After this a new run begins, so that none grows for ever. */
const OPEN_SECONDS = 24 * 3600;
const FULL =
  'the open run of this caller holds as many instances as a run may; a new one begins within a day';
/** How long this process trusts what it read. */
const TRUST_MS = 10 * 60_000;

async function readable(farm: Farm, runId: string): Promise<RunRecord | null | 'not_ours'> {
  try {
    return await farm.runs.get(runId);
  } catch (error) {
    if (isNotOurs(error)) return 'not_ours';
    throw error;
  }
}

export function createOpenRuns(farm: Farm, config: ProducerConfig, log: Pick<Log, 'warn'>): OpenRuns {
  const known = createTtlCache<{ run: Promise<RunRecord>; holds: Set<string> }>(TRUST_MS);

  const openRun = async (name: string, wish: CallerRun): Promise<RunRecord> => {
    const earlier = await farm.runs.getOpen(name);
    const record = earlier === null ? null : await readable(farm, earlier);
    // Made by a newer gateway, or damaged: it stays, and calls of this version have another beside it.
    if (record === 'not_ours') return await openRun(digest([name, earlier]), wish);
    const keyRef = await storeKey(farm, wish.apiKey, config.policy_api_key_ttl_seconds);
    if (record) {
      holdToCeilings(record, config, '');
      return record;
    }
    refuseEnding(`caller ${wish.caller.name}`, wish.settings);
    const dataset = { path: `calls of ${wish.caller.name}`, sha256: '', instances: [] };
    const fresh = { ...recordOf(wish.settings, newId(), dataset, keyRef), open: true };
    holdToCeilings(fresh, config, '');
    const idle = await idleStaleness(fresh, farm);
    if (idle) log.warn({ caller: wish.caller.name, run: fresh.run_id }, idle);
    await farm.runs.create(fresh, []);
    const winner = await farm.runs.setOpen(name, fresh.run_id, OPEN_SECONDS);
    if (winner === fresh.run_id) return fresh;
    await farm.runs.remove(fresh.run_id);
    return (await farm.runs.get(winner)) ?? (await openRun(name, wish));
  };

  const trusted = (name: string, wish: CallerRun) => {
    const entry = known.get(name);
    if (entry) return entry;
    const run = openRun(name, wish);
    const fresh = { run, holds: new Set<string>() };
    known.set(name, fresh);
    run.catch(() => known.delete(name));
    return fresh;
  };

  const nameOf = ({ caller, settings, apiKey }: CallerRun): string =>
    digest([caller.name, settings, apiKey && [apiKey.secret.reveal(), apiKey.origins]]);

  return {
    nameOf,
    async find(wish, instance) {
      const is = digest(instance);
      const name = nameOf(wish);
      // Another row under the same id goes to a run of its own.
      for (const place of [name, digest([name, is])]) {
        const entry = trusted(place, wish);
        const run = await entry.run;
        if (entry.holds.has(is)) return run;
        const appended = await farm.runs.append(run.run_id, instance);
        if (appended === 'appended') {
          entry.holds.add(is);
          return run;
        }
        if (appended === 'full') throw new SwefarmError('run_full', FULL, { retryable: true });
        if (appended === 'gone') {
          known.delete(place);
          return await this.find(wish, instance);
        }
      }
      throw new Error(`no run takes instance ${instance.instance_id}`);
    },
    forget(runId) {
      for (const [name, { run }] of known.entries()) {
        run.then(
          (record) => {
            if (record.run_id === runId) known.delete(name);
          },
          () => undefined,
        );
      }
    },
  };
}
