/**
 * The gateway's part in the life of a call: its own heartbeat, and how a request finds its rollout. A request takes up
 * the rollout that lost its caller, else it gets a new one; nothing is merged that two callers wait for.
 */
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type CallRequest,
  cancelOrphans,
  errorMessage,
  type Instance,
  newId,
  parseRolloutId,
  type RunRecord,
} from '@swefarm/shared';
import type { FastifyInstance } from 'fastify';
import type { RouteDeps } from '../access/deps.ts';
import { Refusal } from '../access/refusal.ts';
import type { CallerRun, OpenRuns } from './openruns.ts';
import { createPendingNotices } from './pendingnotices.ts';

export type Found = {
  callId: string;
  rolloutId: string;
  run: RunRecord;
  attached: boolean;
  /** When the call began, by our own clock; what is taken up began with whoever asked first. */
  begunAt: number;
};

/** How a caller is told from others; `graceMs`: how long its call waits for it when its connection, or we, are gone. */
export type CallIdentity = { fingerprint: string; named: boolean; graceMs: number };

export type CallDesk = {
  /** The rollout of a request: one that lost its caller, or a new one on the queue. When it throws, nothing is held. */
  find(asked: CallIdentity, wish: CallerRun, instance: Instance, signal: AbortSignal): Promise<Found>;
  /** Its connection closed unanswered. */
  drop(callId: string, graceMs: number): Promise<void>;
  /** `named`: what it was answered is remembered under the id that its caller gave. */
  answered(callId: string, named: boolean): Promise<void>;
  /** A fresh rollout in place of a failed one; null when that cannot be had. */
  retry(found: Found): Promise<Found | null>;
};

const BEAT_MS = 1_000;
const WAIT_MS = 250;
/** How long an answered call with an id of the caller's can be asked for again. */
const NAMED_MS = 3600_000;
/** A call's own record outlives the longest hold by this. */
const SPARE_MS = 3600_000;

/** A call id is `fingerprint.nonce`. */
const fingerprintOf = (callId: string): string => callId.slice(0, callId.lastIndexOf('.'));

export function createCallDesk(app: FastifyInstance, deps: RouteDeps, runs: OpenRuns): CallDesk {
  const { farm, config, log, quota } = deps;
  const longest = Math.max(0, ...app.callers.map((caller) => caller.maxHoldSeconds));
  const debts = createPendingNotices();
  const enlisted = Promise.withResolvers<string>();
  enlisted.promise.catch(() => undefined);
  let retired = false;

  app.addHook('onListen', async () => {
    const at = app.server.address();
    const port = at !== null && typeof at === 'object' ? at.port : 0;
    enlisted.resolve(await farm.calls.enlist(`${hostname()}/${config.gateway_host}:${port}`));
  });
  const beating = setInterval(() => {
    void beat().catch((error: unknown) => log.debug({ err: errorMessage(error) }, 'no heartbeat'));
  }, BEAT_MS);
  const beat = async (): Promise<void> => {
    if (retired) return;
    await farm.calls.beat(await enlisted.promise);
    await debts.settleAll();
    const cancelled = await cancelOrphans(farm, config.gateway_grace_seconds * 1000);
    if (cancelled.length > 0) log.info({ rollouts: cancelled }, 'nobody waits for these any more: cancelled');
  };
  app.addHook('preClose', async () => {
    retired = true;
    clearInterval(beating);
    // Every call still held is an orphan at once: its caller finds it at the next start.
    const gateway = await Promise.race([enlisted.promise, sleep(0, null)]);
    if (gateway !== null) await farm.calls.retire(gateway);
  });

  const take = async (rolloutId: string, callId: string, ageMs: number): Promise<Found> => {
    const run = await farm.runs.get(parseRolloutId(rolloutId).runId);
    if (!run) {
      // Nobody can take it up: the next request begins anew.
      await farm.calls.answered(callId, 0);
      throw new Refusal(503, 'run_gone', `the run of ${rolloutId} is not in Redis any more`);
    }
    // Its first gateway may have died between writing the call and queueing its job.
    const settled = await farm.results.get(rolloutId);
    if (settled === null) await farm.jobs.enqueue(run, [rolloutId]);
    return { callId, rolloutId, run, attached: true, begunAt: Date.now() - ageMs };
  };

  const search = async (
    request: CallRequest,
    gateway: string,
    wish: CallerRun,
    instance: Instance,
    signal: AbortSignal,
  ): Promise<Found> => {
    for (;;) {
      signal.throwIfAborted();
      const claim = await farm.calls.claim(request, gateway);
      if (claim.status === 'attached') return await take(claim.rollout_id, claim.call_id, claim.age_ms);
      if (claim.status === 'wait') {
        await sleep(WAIT_MS, undefined, { signal });
        continue;
      }
      const run = await runs.find(wish, instance);
      const life = longest * 1000 + SPARE_MS;
      const opened = await quota.admit(wish.caller, 1, async () => {
        const value = await farm.calls.open(request, gateway, run, instance.instance_id, life);
        return { value, booked: value.status === 'opened' ? { ...run, rollouts: 0 } : null };
      });
      if (opened.status === 'gone') runs.forget(run.run_id);
      if (opened.status !== 'opened') continue;
      await farm.jobs.enqueue(run, [opened.rollout_id]);
      const { call_id: callId, rollout_id: rolloutId } = opened;
      return { callId, rolloutId, run, attached: false, begunAt: Date.now() };
    }
  };

  return {
    async find(asked, wish, instance, signal) {
      const gateway = await enlisted.promise;
      await debts.settle(asked.fingerprint);
      const request = { ...asked, nonce: newId() };
      try {
        return await search(request, gateway, wish, instance, signal);
      } catch (error) {
        // Perhaps it was opened, or taken up, and Redis went away before that was said or its job was there: whoever asks again
        // takes it up.
        await debts.owe(asked.fingerprint, () => farm.calls.abandon(request, gateway, asked.graceMs));
        throw error;
      }
    },
    async drop(callId, graceMs) {
      if (retired) return;
      const gateway = await enlisted.promise;
      await debts.owe(fingerprintOf(callId), () => farm.calls.drop(callId, gateway, graceMs));
    },
    answered: (callId, named) =>
      debts.owe(fingerprintOf(callId), () => farm.calls.answered(callId, named ? NAMED_MS : 0)),
    async retry(found) {
      const rolloutId = await farm.calls.retry(found.callId, found.rolloutId);
      if (rolloutId === null) return null;
      await farm.jobs.enqueue(found.run, [rolloutId]);
      return { ...found, rolloutId };
    },
  };
}
