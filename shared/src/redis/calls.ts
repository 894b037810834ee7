/**
 * Stores the calls that wait at a gateway for their rollouts. After a broken connection or a restart of the gateway, a caller finds its
 * rollout again; rollouts of abandoned calls are cancelled.
 */
import type { Redis } from 'ioredis';
import { newId, parseRolloutId } from '../records/ids.ts';
import type { RunRecord } from '../records/job.ts';
import type { Keys } from './keys.ts';
import { firstSequence } from './runs.ts';
import { loadScript } from './script.ts';

export type CallRequest = {
  /** Identifies this request, so that a call whose claim was lost can be released. */
  nonce: string;
  /** Hash that requests of the same call share: of caller, settings and body, or of caller and id. */
  fingerprint: string;
  /** Whether the caller gave an id. A request with this id finds the call even after the answer. */
  named: boolean;
  /** Time in ms within which a caller may return after the gateway died; absent: the time that `expired` gets. */
  graceMs?: number;
};

export type CallClaim =
  | { status: 'attached'; call_id: string; rollout_id: string; age_ms: number }
  /** The call belongs to a gateway that may be dead: claim again later. */
  | { status: 'wait' }
  | { status: 'none' };

export type CallOpening =
  | { status: 'opened'; call_id: string; rollout_id: string }
  /** A call with this name exists: claim that call. */
  | { status: 'taken' }
  /** The run has expired. */
  | { status: 'gone' };

export type Calls = {
  /** Registers a gateway and returns its id. Calls of an earlier gateway at `address` (`host:port`) lose this gateway: they are orphans. */
  enlist(address: string): Promise<string>;
  /** Confirms that a gateway is alive. Call this each second: after 6 s without a beat, the calls of the gateway are orphans. */
  beat(gateway: string): Promise<void>;
  /** Makes the calls of a gateway orphans, because the gateway stops. */
  retire(gateway: string): Promise<void>;
  /** Assigns an orphan to the gateway, unless the grace of the orphan is over. */
  claim(request: CallRequest, gateway: string): Promise<CallClaim>;
  /** Opens a call with the next rollout of an instance of an open run. */
  open(
    request: CallRequest,
    gateway: string,
    run: Pick<RunRecord, 'run_id' | 'kind'>,
    instanceId: string,
    lifeMs: number,
  ): Promise<CallOpening>;
  /** Reports that the connection of a call closed before the answer. */
  drop(callId: string, gateway: string, graceMs: number): Promise<void>;
  /** Releases the call that this request opened or claimed, for use if the reply was lost. */
  abandon(request: CallRequest, gateway: string, graceMs: number): Promise<void>;
  /** Reports that a call was answered. @param nameLifeMs life time of the call's name after the answer; 0: no name */
  answered(callId: string, nameLifeMs: number): Promise<void>;
  /** Opens a new rollout for a call whose rollout failed; null if the call or the run expired. */
  retry(callId: string, failedRolloutId: string): Promise<string | null>;
  /**
   * Returns calls whose grace is over; cancel their rollouts, then `forget` the calls. Orphans of a dead gateway have their own grace or
   * `graceMs`, which starts when another gateway is alive; after 15 minutes without one, their grace is over.
   */
  expired(graceMs: number): Promise<{ call_id: string; rollout_id: string }[]>;
  forget(callIds: readonly string[]): Promise<void>;
  /** Counts the unanswered calls of all gateways. */
  count(): Promise<{ connected: number; orphaned: number }>;
};

const GATEWAYS_SECONDS = 30 * 24 * 3600;
/** LIFE_MS of lua/call_rules.lua plus one second, because this code reads the time in whole seconds. */
const LIFE_MS = 7_000;
const SWEEP = 1000;

const callScripts = (redis: Redis) => {
  const script = (name: string) => loadScript(redis, 'call_rules', name);
  return {
    claim: script('call_claim'),
    open: script('call_open'),
    drop: script('call_drop'),
    answered: script('call_answered'),
    retry: script('call_retry'),
    orphan: script('call_orphan'),
    expire: script('call_expire'),
    enlist: script('gateway_enlist'),
    beat: script('gateway_beat'),
  };
};

type Store = { redis: Redis; keys: Keys; scripts: ReturnType<typeof callScripts> };

export function createCalls(redis: Redis, keys: Keys): Calls {
  const scripts = callScripts(redis);
  const store: Store = { redis, keys, scripts };
  const { open, gateways, addresses } = keys.calls;
  return {
    async enlist(address) {
      const gateway = newId();
      await scripts.enlist([gateways, addresses], [gateway, address, GATEWAYS_SECONDS]);
      return gateway;
    },
    beat: async (gateway) => void (await scripts.beat([gateways], [gateway, GATEWAYS_SECONDS, 0])),
    retire: async (gateway) => void (await scripts.beat([gateways], [gateway, GATEWAYS_SECONDS, 1])),
    claim: (request, gateway) => claimCall(store, request, gateway),
    open: (request, gateway, run, instanceId, lifeMs) =>
      openCall(store, request, { gateway, run, instanceId, lifeMs }),
    drop: async (callId, gateway, graceMs) =>
      void (await scripts.drop([alikeOf(keys, callId), open], [callId, gateway, Math.round(graceMs), 'id'])),
    async abandon(request, gateway, graceMs) {
      const at = [keys.calls.alike(request.fingerprint), open];
      await scripts.drop(at, [callIdOf(request), gateway, Math.round(graceMs), 'id']);
      await scripts.drop(at, [request.nonce, gateway, Math.round(graceMs), 'by']);
    },
    answered: async (callId, nameLifeMs) =>
      void (await scripts.answered([alikeOf(keys, callId), open], [callId, Math.round(nameLifeMs)])),
    retry: (callId, failedRolloutId) => retryCall(store, callId, failedRolloutId),
    expired: (graceMs) => expiredCalls(store, graceMs),
    async count() {
      const [all, connected] = await Promise.all([redis.zcard(open), redis.zcount(open, '+inf', '+inf')]);
      return { connected, orphaned: all - connected };
    },
    async forget(callIds) {
      for (const id of callIds) await scripts.expire([alikeOf(keys, id), open], [id, 1]);
    },
  };
}

const callIdOf = ({ fingerprint, nonce }: CallRequest): string => `${fingerprint}.${nonce}`;

/** Returns the key of calls with an equal fingerprint; a call id is `fingerprint.nonce`. */
const alikeOf = (keys: Keys, callId: string): string =>
  keys.calls.alike(callId.slice(0, callId.lastIndexOf('.')));

async function claimCall(
  { keys, scripts }: Store,
  request: CallRequest,
  gateway: string,
): Promise<CallClaim> {
  const { alike, open, gateways } = keys.calls;
  const [status, call_id = '', rollout_id = '', age] = (await scripts.claim(
    [alike(request.fingerprint), open, gateways],
    [gateway, request.named ? 1 : 0, request.nonce],
  )) as string[];
  if (status !== 'attached') return { status: status as 'wait' | 'none' };
  return { status, call_id, rollout_id, age_ms: Number(age) };
}

type CallTarget = {
  gateway: string;
  run: Pick<RunRecord, 'run_id' | 'kind'>;
  instanceId: string;
  lifeMs: number;
};

async function openCall(
  { redis, keys, scripts }: Store,
  request: CallRequest,
  { gateway, run: { run_id, kind }, instanceId, lifeMs }: CallTarget,
): Promise<CallOpening> {
  const run = keys.run(run_id);
  const { alike, open } = keys.calls;
  const call_id = callIdOf(request);
  const first = await firstSequence({ redis, keys }, kind);
  const names = [alike(request.fingerprint), open, run.record, run.groups, run.appended, run.committed];
  const caller = [call_id, gateway, request.named ? 1 : 0];
  const [status, rollout_id = ''] = (await scripts.open(
    [...names, keys.unfinished],
    [...caller, run_id, instanceId, Math.round(lifeMs), first, request.graceMs ?? ''],
  )) as string[];
  if (status !== 'opened') return { status: status as 'taken' | 'gone' };
  return { status, call_id, rollout_id };
}

async function retryCall(
  { keys, scripts }: Store,
  callId: string,
  failedRolloutId: string,
): Promise<string | null> {
  const { runId, instanceId } = parseRolloutId(failedRolloutId);
  const run = keys.run(runId);
  return (await scripts.retry(
    [alikeOf(keys, callId), run.record, run.groups, keys.unfinished],
    [callId, runId, instanceId, failedRolloutId],
  )) as string | null;
}

async function expiredCalls(store: Store, graceMs: number): ReturnType<Calls['expired']> {
  const { redis, keys, scripts } = store;
  const { open, gateways } = keys.calls;
  const { now, alive, dead } = await countGateways(store);
  if (dead.length > 0) {
    for (const id of await redis.zrangebyscore(open, '+inf', '+inf')) {
      const args = [id, Math.round(graceMs), alive ? 1 : 0];
      await scripts.orphan([open, alikeOf(keys, id), gateways], args);
    }
    if (alive) await redis.hdel(gateways, ...dead);
  }
  const due = await redis.zrangebyscore(open, '-inf', now, 'LIMIT', 0, SWEEP);
  const found = await Promise.all(
    due.map(async (call_id) => ({
      call_id,
      rollout_id: (await scripts.expire([alikeOf(keys, call_id), open], [call_id, 0])) as string | null,
    })),
  );
  return found.flatMap(({ call_id, rollout_id }) => (rollout_id === null ? [] : [{ call_id, rollout_id }]));
}

async function countGateways({
  redis,
  keys,
}: Store): Promise<{ now: number; alive: boolean; dead: string[] }> {
  const [[seconds], beats] = await Promise.all([redis.time(), redis.hgetall(keys.calls.gateways)]);
  const now = Number(seconds) * 1000;
  const dead = Object.entries(beats).filter(([, beat]) => Number(beat) < now - LIFE_MS);
  const alive = Object.keys(beats).length > dead.length;
  return { now, alive, dead: dead.map(([gateway]) => gateway) };
}
