/**
 * Sends the heartbeat of this gateway to Redis, and finds the rollout of each request. If the caller of an equal call disconnected, the
 * request takes over the rollout of that call; otherwise the request gets a new rollout. Two connected requests share a rollout only if
 * they have the same id.
 */
import { hostname } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import { leadOf } from '@swefarm/runs';
import {
  type CallRequest,
  cancelOrphans,
  errorMessage,
  type Instance,
  newId,
  parseRolloutId,
  type RolloutPolicy,
  type RunRecord,
  resumeRun,
  sleep,
  waitAtMost,
} from '@swefarm/shared';
import type { FastifyInstance } from 'fastify';
import type { RouteDeps } from '../access/deps.ts';
import { Refusal } from '../access/refusal.ts';
import type { CallIdentity } from './callidentity.ts';
import type { OpenProbes } from './openprobes.ts';
import type { CallerRun, OpenRuns } from './openruns.ts';
import { PendingNotices } from './pendingnotices.ts';
import { createTtlCache } from './ttlcache.ts';

export type CallRollout = {
  callId: string;
  rolloutId: string;
  run: RunRecord;
  /** Whether an earlier request started the rollout. */
  attached: boolean;
  /** Time of the call's first request, in ms since the epoch by the clock of this process. */
  startedAt: number;
};

type Search = { request: CallRequest; gateway: string; callerRun: CallerRun; instance: Instance };

const BEAT_MS = 1_000;
const WAIT_MS = 250;
/** The history of an instance is read at most once in this time. */
const LEAD_MS = 60_000;
/** Time after the answer in which a request with the same id gets the same rollout. */
const NAMED_MS = 3600_000;
/** Lifetime of a call's record after the longest wait of all callers. */
const SPARE_MS = 3600_000;

/** A call id is `fingerprint.nonce`. */
const fingerprintOf = (callId: string): string => callId.slice(0, callId.lastIndexOf('.'));

export class CallTracker {
  readonly #app: FastifyInstance;
  readonly #deps: RouteDeps;
  readonly #runs: OpenRuns;
  readonly #probes: OpenProbes;
  readonly #recordMs: number;
  readonly #notices = new PendingNotices();
  readonly #leads = createTtlCache<Promise<number>>(LEAD_MS);
  /** The id of this gateway in Redis; null: the gateway is not registered. */
  #gateway: Promise<string> | null = null;
  #retired = false;

  /** Sends heartbeats while `app` listens. */
  constructor(app: FastifyInstance, deps: RouteDeps, runs: OpenRuns, probes: OpenProbes) {
    this.#app = app;
    this.#deps = deps;
    this.#probes = probes;
    this.#runs = runs;
    this.#recordMs = Math.max(0, ...app.callers.map((caller) => caller.max_hold_seconds)) * 1000 + SPARE_MS;
    const { farm, log } = deps;
    let beating: NodeJS.Timeout | undefined;
    app.addHook('onListen', async () => {
      beating = setInterval(() => {
        void this.#beat().catch((error: unknown) =>
          log.debug({ err: errorMessage(error) }, 'heartbeat failed'),
        );
      }, BEAT_MS);
      await this.#enlist();
    });
    app.addHook('preClose', async () => {
      this.#retired = true;
      clearInterval(beating);
      // Makes all unanswered calls orphans, so that repeated requests find the rollouts after a restart of the gateway.
      const listed = this.#gateway && (await waitAtMost(this.#gateway, 0));
      if (listed?.by === 'itself') await farm.calls.retire(listed.value);
    });
  }

  /** Returns the rollout of an orphan (an equal call whose caller disconnected), of a call with the same id, or a new, queued rollout. */
  async find(
    identity: CallIdentity,
    callerRun: CallerRun,
    instance: Instance,
    signal: AbortSignal,
  ): Promise<CallRollout> {
    const gateway = await this.#enlist();
    await this.#notices.flush(identity.fingerprint);
    const request = { ...identity, nonce: newId() };
    try {
      return await this.#search({ request, gateway, callerRun, instance }, signal);
    } catch (error) {
      // Redis may have opened the call before the error. `abandon` makes this call an orphan, so that a repeated request finds it.
      const { farm } = this.#deps;
      await this.#notices.send(identity.fingerprint, () =>
        farm.calls.abandon(request, gateway, identity.graceMs),
      );
      throw error;
    }
  }

  /** Reports that the connection of a call closed without an answer. */
  async drop(callId: string, graceMs: number): Promise<void> {
    if (this.#retired) return;
    const gateway = await this.#enlist();
    const { farm } = this.#deps;
    await this.#notices.send(fingerprintOf(callId), () => farm.calls.drop(callId, gateway, graceMs));
  }

  /** Reports an answered call. `named`: for another hour, a request with the same id gets the same rollout. */
  async answered(callId: string, named: boolean): Promise<void> {
    const { farm } = this.#deps;
    await this.#notices.send(fingerprintOf(callId), () => farm.calls.answered(callId, named ? NAMED_MS : 0));
  }

  /** Returns a new rollout in place of a failed one; null if the call or its run has expired. */
  async retry(failed: CallRollout): Promise<CallRollout | null> {
    const { farm } = this.#deps;
    const rolloutId = await farm.calls.retry(failed.callId, failed.rolloutId);
    if (rolloutId === null) return null;
    await farm.jobs.enqueue(failed.run, [rolloutId]);
    return { ...failed, rolloutId };
  }

  /** Registers this gateway, which listens, and returns its id. After an error, the next heartbeat or request registers the gateway. */
  #enlist(): Promise<string> {
    const { farm, config } = this.#deps;
    const address = this.#app.server.address();
    const port = address !== null && typeof address === 'object' ? address.port : 0;
    this.#gateway ??= farm.calls
      .enlist(`${hostname()}/${config.gateway_host}:${port}`)
      .catch((error: unknown) => {
        this.#gateway = null;
        throw error;
      });
    return this.#gateway;
  }

  async #beat(): Promise<void> {
    if (this.#retired) return;
    const { farm, config, log } = this.#deps;
    await farm.calls.beat(await this.#enlist());
    await this.#notices.flushAll();
    const cancelled = await cancelOrphans(farm, config.gateway_grace_seconds * 1000);
    if (cancelled.length > 0)
      log.info({ rollouts: cancelled }, 'cancelled abandoned rollouts: no caller is connected');
  }

  async #search(search: Search, signal: AbortSignal): Promise<CallRollout> {
    const { farm } = this.#deps;
    for (;;) {
      signal.throwIfAborted();
      const claim = await farm.calls.claim(search.request, search.gateway);
      if (claim.status === 'attached') {
        const attached = await this.#attach(claim.rollout_id, claim.call_id, claim.age_ms, search.callerRun);
        if (attached) return attached;
        continue;
      }
      if (claim.status === 'wait') {
        await sleep(WAIT_MS, signal);
        continue;
      }
      const opened = await this.#open(search);
      if (opened) return opened;
    }
  }

  /** Returns a new rollout; null: another request opened the call, or the run has expired. */
  async #open({ request, gateway, callerRun, instance }: Search): Promise<CallRollout | null> {
    const { farm, quota } = this.#deps;
    const run = await this.#runs.find(callerRun, instance);
    await this.#requireUnpaused(run);
    const policy = await this.#runs.ownPolicy(callerRun);
    this.#probes.begin(withEndpoints(run, policy), callerRun, instance);
    const opened = await quota.admit(callerRun.caller, 1, async () => {
      const lead = await this.#leadOf(run, instance);
      const { instance_id: id } = instance;
      const value = await farm.calls.open(request, gateway, run, id, this.#recordMs, { lead, policy });
      return { value, booked: value.status === 'opened' ? { ...run, rollouts: 0 } : null };
    });
    if (opened.status === 'gone') this.#runs.forget(run.run_id);
    if (opened.status !== 'opened') return null;
    await farm.jobs.enqueue(run, [opened.rollout_id]);
    const { call_id: callId, rollout_id: rolloutId } = opened;
    return { callId, rolloutId, run: withEndpoints(run, policy), attached: false, startedAt: Date.now() };
  }

  /** Returns the lead of an instance's group. Reads the history at most once a minute for all calls of the group. */
  #leadOf(run: RunRecord, instance: Instance): Promise<number> {
    const name = `${run.run_id} ${instance.instance_id}`;
    const known = this.#leads.get(name);
    if (known) return known;
    const lead = leadOf(this.#deps.farm, run, instance);
    this.#leads.set(name, lead);
    lead.catch(() => this.#leads.delete(name));
    return lead;
  }

  /** Throws Refusal 503 `calls_unread` during an automatic pause, and resumes the run after the pause. A manual pause refuses no call. */
  async #requireUnpaused({ run_id: runId }: RunRecord): Promise<void> {
    const { farm } = this.#deps;
    const pause = await farm.groups.paused(runId);
    if (!pause || pause.reason === null || pause.ends_at === undefined) return;
    const leftMs = pause.ends_at - (await farm.clock.ask());
    if (leftMs <= 0) return await resumeRun(farm, runId);
    const seconds = Math.ceil(leftMs / 1000);
    const message = `run ${runId} of this caller is paused for another ${seconds} s: ${pause.reason}`;
    throw new Refusal(503, 'calls_unread', message, { retryAfterSeconds: seconds });
  }

  /**
   * Returns the rollout of an earlier request. If the rollout has no result and the caller names other endpoints, cancels the rollout and
   * returns null: the caller has restarted, and the endpoints of the rollout may no longer exist.
   */
  async #attach(
    rolloutId: string,
    callId: string,
    ageMs: number,
    { own }: CallerRun,
  ): Promise<CallRollout | null> {
    const { farm } = this.#deps;
    const run = await farm.runs.get(parseRolloutId(rolloutId).runId);
    if (!run) {
      // Ends the call, so that the next request gets a new rollout.
      await farm.calls.answered(callId, 0);
      throw new Refusal(503, 'run_gone', `the run of ${rolloutId} is no longer in Redis`);
    }
    // The first gateway may have died before it queued the job.
    const committed = await farm.results.get(rolloutId);
    if (committed === null) {
      const now = withEndpoints(run, await farm.jobs.policyOf(rolloutId));
      if (!isDeepStrictEqual(now.policy?.urls, withEndpoints(run, own).policy?.urls)) {
        await farm.cancel.cancelRollouts([rolloutId], 'orphan');
        await farm.calls.answered(callId, 0);
        return null;
      }
      await farm.jobs.enqueue(run, [rolloutId]);
    }
    const probed = withEndpoints(run, own);
    return { callId, rolloutId, run: probed, attached: true, startedAt: Date.now() - ageMs };
  }
}

/**
 * Returns the run with the rollout's own endpoints, so that the gateway probes them. The probe omits the rollout's own headers and fields,
 * because each rollout may have different ones.
 */
const withEndpoints = (run: RunRecord, own: Pick<RolloutPolicy, 'urls'> | null): RunRecord =>
  run.policy && own?.urls ? { ...run, policy: { ...run.policy, urls: own.urls } } : run;
