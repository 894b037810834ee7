/**
 * Probes the endpoints of open runs in the background. One gateway runs one probe for each combination of caller and settings. No call
 * waits for the probe; the findings are in the log and in later answers.
 */

import { probeEndpoints } from '@swefarm/runs';
import {
  asksPolicy,
  DEFAULT_POLICY,
  type EndpointProbe,
  errorMessage,
  type Farm,
  followsPolicy,
  type Instance,
  type Log,
  modelOfRun,
  type RunRecord,
} from '@swefarm/shared';
import { digest } from '../access/digest.ts';
import type { CallerRun } from './openruns.ts';
import { createTtlCache } from './ttlcache.ts';

/** Lifetime of a gateway's claim of a probe, after which another gateway may probe. */
const PROBING_MS = 10 * 60_000;
const WELL_MS = 24 * 3600_000;
/** Lifetime of the findings of a failed probe. A later call probes again, because the endpoint may be repaired. */
const PROBLEM_MS = 10 * 60_000;
const KNOWN_MS = 10_000;

export class OpenProbes {
  readonly #deps: { farm: Farm; log: Log; signal: AbortSignal };
  readonly #known = createTtlCache<EndpointProbe | null>(KNOWN_MS);

  constructor(deps: { farm: Farm; log: Log; signal: AbortSignal }) {
    this.#deps = deps;
  }

  /** Starts the probe of the run's endpoints in the background, unless a gateway runs it or has its findings. */
  begin(run: RunRecord, callerRun: CallerRun, instance: Instance): void {
    const name = nameOf(run);
    if (name === null || this.#known.get(name) !== undefined) return;
    this.#known.set(name, null);
    const { log, signal } = this.#deps;
    this.#probeOnce(name, run, callerRun, instance).catch((error: unknown) => {
      if (!signal.aborted) log.warn({ run: run.run_id, err: errorMessage(error) }, 'endpoint probe failed');
    });
  }

  /** Returns the findings of the probe; null: no probe has ended, or the run needs no probe. */
  async find(run: RunRecord): Promise<EndpointProbe | null> {
    const name = nameOf(run);
    if (name === null) return null;
    const known = this.#known.get(name);
    if (known) return known;
    const found = await this.#deps.farm.probes.get(name);
    if (found !== null) this.#known.set(name, found);
    return found;
  }

  async #probeOnce(
    name: string,
    run: RunRecord,
    { caller, own, apiKey: keyOfRun }: CallerRun,
    instance: Instance,
  ): Promise<void> {
    const { farm, log, signal } = this.#deps;
    const { policy, agent } = run;
    if (policy === null) return;
    const [record] = await farm.policies.get([policy.name ?? DEFAULT_POLICY]);
    const followed = record && followsPolicy(policy, record) ? record : null;
    // The policy does not serve now, so a later call starts the probe.
    if (followed && followed.state !== 'serving') return this.#known.delete(name);
    if (!(await farm.probes.claim(name, PROBING_MS))) return;
    const urls = followed && followed.endpoints.length > 0 ? followed.endpoints : policy.urls;
    const apiKey = own?.urls ? own.apiKey : keyOfRun;
    const tried = await probeEndpoints(urls, {
      ...{
        config: { ...policy, model: modelOfRun(policy, followed) },
        apiKey,
        signal,
        ...(agent.type === 'installed' ? {} : { action: agent.action === 'tool' ? agent.action : 'fenced' }),
      },
      ...{ contextLimit: agent.context_limit, sequenceBudget: agent.max_sequence_tokens },
      problem: instance.problem_statement,
    });
    signal.throwIfAborted();
    const findings = tried.flatMap(({ url, found }) => found.map((one) => ({ url, ...one })));
    const problems = findings
      .filter(({ status }) => status !== 'ok')
      .map(({ url, subject, detail, remedy }) => `${withoutUser(url)}, ${subject}: ${detail} → ${remedy}`);
    const logprobs = findings.find((one) => one.logprobs !== undefined)?.logprobs ?? null;
    const isBad = findings.some(({ status }) => status === 'fail');
    await farm.probes.store(name, { logprobs, problems }, isBad ? PROBLEM_MS : WELL_MS);
    const context = { caller: caller.name, run: run.run_id, logprobs, problems };
    if (isBad) log.error(context, 'endpoint probe failed: a trainer cannot use these calls');
    else log.info(context, 'endpoint probe ended');
  }
}

/** Returns the name of the run's probe; null: the run does not require tokens, so its endpoints are not probed. */
function nameOf({ policy, agent, dataset }: RunRecord): string | null {
  if (policy === null || !policy.require_tokens || !asksPolicy(agent.type)) return null;
  const { api_key_ref: _, price: __, ...config } = policy;
  return digest([
    dataset.path,
    config,
    agent.type,
    agent.action,
    agent.context_limit,
    agent.max_sequence_tokens,
  ]);
}

function withoutUser(url: string): string {
  const parsed = new URL(url);
  parsed.username = '';
  parsed.password = '';
  return parsed.href;
}
