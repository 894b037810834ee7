/**
 * Calls that a gateway holds open until their rollout is done. They live here, so that a caller who lost its connection,
 * or whose gateway was restarted, finds its rollout again, and so that nothing runs on for nobody.
 */
import type { Redis } from 'ioredis';
import { newId, parseRolloutId } from '../records/ids.ts';
import type { RunRecord } from '../records/job.ts';
import type { Keys } from './keys.ts';
import { firstSequence } from './runs.ts';
import { loadScript } from './script.ts';

export type CallRequest = {
  /** Of this one request: what it took, when no answer tells, is found and given back by it. */
  nonce: string;
  /** What makes two requests the same: caller, settings and body, or caller and the id that it gave. */
  fingerprint: string;
  /** The caller gave an id: all requests with it are one call, also once it was answered. */
  named: boolean;
  /** How long the call waits for its caller when its gateway is gone; without, as who sweeps says. */
  graceMs?: number;
};

export type CallClaim =
  | { status: 'attached'; call_id: string; rollout_id: string; age_ms: number }
  /** A gateway that may be dead holds one like it: ask again in a moment. */
  | { status: 'wait' }
  | { status: 'none' };

export type CallOpening =
  | { status: 'opened'; call_id: string; rollout_id: string }
  /** Another request with this name was quicker: claim. */
  | { status: 'taken' }
  /** The run is not there any more. */
  | { status: 'gone' };

export type Calls = {
  /** Begins a gateway's life at an address (`host:port`); what an earlier one there held is orphaned. Answers its id. */
  enlist(address: string): Promise<string>;
  /** Call each second. After 6 s without, its calls are orphans. */
  beat(gateway: string): Promise<void>;
  /** Its calls are orphans from now on. */
  retire(gateway: string): Promise<void>;
  /** Takes up a call that lost its connection or its gateway and is still in grace; each is taken up once. */
  claim(request: CallRequest, gateway: string): Promise<CallClaim>;
  /** A new call, and the next rollout of an instance of an open run with it. */
  open(
    request: CallRequest,
    gateway: string,
    run: Pick<RunRecord, 'run_id' | 'kind'>,
    instanceId: string,
    lifeMs: number,
  ): Promise<CallOpening>;
  /** Its connection closed unanswered. */
  drop(callId: string, gateway: string, graceMs: number): Promise<void>;
  /** Whatever this request opened or took up is held for it no more: for when the answer that named it was lost. */
  abandon(request: CallRequest, gateway: string, graceMs: number): Promise<void>;
  /** It was answered. `nameLifeMs`: how long its name is remembered; 0 when it has none. */
  answered(callId: string, nameLifeMs: number): Promise<void>;
  /** A fresh rollout for a call whose rollout failed; null when call or run are gone. */
  retry(callId: string, failedRolloutId: string): Promise<string | null>;
  /**
   * Calls out of grace: nobody can take them up again; `forget` them once their rollouts are cancelled. Those of a dead
   * gateway have their own grace, else `graceMs`, from when this first finds another one alive, and 15 minutes when it finds none.
   */
  lapsed(graceMs: number): Promise<{ call_id: string; rollout_id: string }[]>;
  forget(callIds: readonly string[]): Promise<void>;
  /** Calls that are not answered yet, over all gateways. */
  count(): Promise<{ held: number; orphaned: number }>;
};

/** Of the hash of gateways; renewed by every beat. */
const GATEWAYS_SECONDS = 30 * 24 * 3600;
/** As in lua/call_rules.lua, and a second more for a clock read in whole seconds. */
const LIFE_MS = 7_000;
/** Looked at in one sweep. */
const SWEEP = 1000;

export function createCalls(redis: Redis, keys: Keys): Calls {
  const script = (name: string) => loadScript(redis, 'call_rules', name);
  const scripts = {
    claim: script('call_claim'),
    open: script('call_open'),
    drop: script('call_drop'),
    settle: script('call_answered'),
    retry: script('call_retry'),
    bereave: script('call_bereave'),
    lapse: script('call_lapse'),
    enlist: script('gateway_enlist'),
    beat: script('gateway_beat'),
  };
  const of = keys.calls;
  /** A call id is `fingerprint.nonce`. */
  const siblings = (callId: string): string => of.alike(callId.slice(0, callId.lastIndexOf('.')));
  /** Gateways that beat no more, by the clock of Redis. */
  const census = async (): Promise<{ now: number; alive: boolean; dead: string[] }> => {
    const [[seconds], beats] = await Promise.all([redis.time(), redis.hgetall(of.gateways)]);
    const now = Number(seconds) * 1000;
    const dead = Object.entries(beats).filter(([, beat]) => Number(beat) < now - LIFE_MS);
    const alive = Object.keys(beats).length > dead.length;
    return { now, alive, dead: dead.map(([gateway]) => gateway) };
  };
  const idOf = ({ fingerprint, nonce }: CallRequest): string => `${fingerprint}.${nonce}`;
  const named = (request: CallRequest): number => (request.named ? 1 : 0);
  return {
    async enlist(address) {
      const gateway = newId();
      await scripts.enlist([of.gateways, of.addresses], [gateway, address, GATEWAYS_SECONDS]);
      return gateway;
    },
    beat: async (gateway) => void (await scripts.beat([of.gateways], [gateway, GATEWAYS_SECONDS, 0])),
    retire: async (gateway) => void (await scripts.beat([of.gateways], [gateway, GATEWAYS_SECONDS, 1])),
    async claim(request, gateway) {
      const [status, call_id = '', rollout_id = '', age] = (await scripts.claim(
        [of.alike(request.fingerprint), of.open, of.gateways],
        [gateway, named(request), request.nonce],
      )) as string[];
      if (status !== 'attached') return { status: status as 'wait' | 'none' };
      return { status, call_id, rollout_id, age_ms: Number(age) };
    },
    async open(request, gateway, { run_id, kind }, instanceId, lifeMs) {
      const run = keys.run(run_id);
      const call_id = idOf(request);
      const first = await firstSequence({ redis, keys }, kind);
      const [status, rollout_id = ''] = (await scripts.open(
        [
          of.alike(request.fingerprint),
          of.open,
          run.record,
          run.groups,
          run.appended,
          run.committed,
          keys.unfinished,
        ],
        [
          call_id,
          gateway,
          named(request),
          run_id,
          instanceId,
          Math.round(lifeMs),
          first,
          request.graceMs ?? '',
        ],
      )) as string[];
      if (status !== 'opened') return { status: status as 'taken' | 'gone' };
      return { status, call_id, rollout_id };
    },
    drop: async (callId, gateway, graceMs) =>
      void (await scripts.drop([siblings(callId), of.open], [callId, gateway, Math.round(graceMs), 'id'])),
    async abandon(request, gateway, graceMs) {
      const at = [of.alike(request.fingerprint), of.open];
      await scripts.drop(at, [idOf(request), gateway, Math.round(graceMs), 'id']);
      await scripts.drop(at, [request.nonce, gateway, Math.round(graceMs), 'by']);
    },
    answered: async (callId, nameLifeMs) =>
      void (await scripts.settle([siblings(callId), of.open], [callId, Math.round(nameLifeMs)])),
    async retry(callId, failedRolloutId) {
      const { runId, instanceId } = parseRolloutId(failedRolloutId);
      const run = keys.run(runId);
      return (await scripts.retry(
        [siblings(callId), run.record, run.groups, keys.unfinished],
        [callId, runId, instanceId, failedRolloutId],
      )) as string | null;
    },
    async lapsed(graceMs) {
      const { now, alive, dead } = await census();
      if (dead.length > 0) {
        for (const id of await redis.zrangebyscore(of.open, '+inf', '+inf')) {
          const args = [id, Math.round(graceMs), alive ? 1 : 0];
          await scripts.bereave([of.open, siblings(id), of.gateways], args);
        }
        if (alive) await redis.hdel(of.gateways, ...dead);
      }
      const due = await redis.zrangebyscore(of.open, '-inf', now, 'LIMIT', 0, SWEEP);
      const found = await Promise.all(
        due.map(async (call_id) => ({
          call_id,
          rollout_id: (await scripts.lapse([siblings(call_id), of.open], [call_id, 0])) as string | null,
        })),
      );
      return found.flatMap(({ call_id, rollout_id }) =>
        rollout_id === null ? [] : [{ call_id, rollout_id }],
      );
    },
    async count() {
      const [all, held] = await Promise.all([redis.zcard(of.open), redis.zcount(of.open, '+inf', '+inf')]);
      return { held, orphaned: all - held };
    },
    async forget(callIds) {
      for (const id of callIds) await scripts.lapse([siblings(id), of.open], [id, 1]);
    },
  };
}
