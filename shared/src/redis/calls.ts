/**
 * Stores the calls that wait at a gateway for their rollouts. After a broken connection or a restart of the gateway, a caller finds its
 * rollout again; rollouts of abandoned calls are cancelled.
 */
import { newId, parseRolloutId } from '../records/ids.ts';
import type { RunRecord } from '../records/job.ts';
import type { RolloutPolicy } from '../records/runconfig.ts';
import type { Cancel } from './cancel.ts';
import { Part } from './part.ts';
import { firstSequence } from './runs.ts';

export type CallRequest = {
  /** Identifies this request, so that its call can be released even if the reply of Redis was lost. */
  nonce: string;
  /** Hash that requests of the same call share: of caller, settings and row, or of caller, id and row. */
  fingerprint: string;
  /** Whether the caller gave an id. A request with this id finds the call even after the answer. */
  named: boolean;
  /** Time in ms within which a caller may return after the gateway died; absent: the time that `expired` gets. */
  graceMs?: number;
};

export type CallClaim =
  | { status: 'attached'; call_id: string; rollout_id: string; age_ms: number }
  /** The gateway of the call may be dead, or the grace of a named call is over and the call is not removed yet: claim again later. */
  | { status: 'wait' }
  | { status: 'none' };

export type CallOpening =
  | { status: 'opened'; call_id: string; rollout_id: string }
  /** A call with this name exists: claim that call. */
  | { status: 'taken' }
  /** The run has expired. */
  | { status: 'gone' };

const GATEWAYS_SECONDS = 30 * 24 * 3600;
/** One second more than LIFE_MS of lua/call_rules.lua, so that the scripts also count the gateway as dead. */
const LIFE_MS = 7_000;
const SWEEP = 1000;

export class Calls extends Part {
  readonly #claim = this.#load('call_claim');
  readonly #open = this.#load('call_open');
  readonly #drop = this.#load('call_drop');
  readonly #answered = this.#load('call_answered');
  readonly #retry = this.#load('call_retry');
  readonly #orphan = this.#load('call_orphan');
  readonly #expire = this.#load('call_expire');
  readonly #enlist = this.#load('gateway_enlist');
  readonly #beat = this.#load('gateway_beat');

  #load(name: string) {
    return this.script('call_rules', name);
  }

  /** Registers a gateway and returns its id. The calls of an earlier gateway at `address` (`host:port`) become orphans. */
  async enlist(address: string): Promise<string> {
    const gateway = newId();
    const { gateways, addresses } = this.keys.calls;
    await this.#enlist([gateways, addresses], [gateway, address, GATEWAYS_SECONDS]);
    return gateway;
  }

  /** Confirms that a gateway is alive. Call this each second: after 6 s without a beat, the calls of the gateway are orphans. */
  async beat(gateway: string): Promise<void> {
    await this.#beat([this.keys.calls.gateways], [gateway, GATEWAYS_SECONDS, 0]);
  }

  /** Makes the calls of a gateway orphans, because the gateway stops. */
  async retire(gateway: string): Promise<void> {
    await this.#beat([this.keys.calls.gateways], [gateway, GATEWAYS_SECONDS, 1]);
  }

  /** Assigns to the gateway an orphan whose grace is not over, or the call that a named request identifies. */
  async claim(request: CallRequest, gateway: string): Promise<CallClaim> {
    const { alike, open, gateways } = this.keys.calls;
    const [status, call_id = '', rollout_id = '', age] = (await this.#claim(
      [alike(request.fingerprint), open, gateways],
      [gateway, request.named ? 1 : 0, request.nonce],
    )) as string[];
    if (status !== 'attached') return { status: status as 'wait' | 'none' };
    return { status, call_id, rollout_id, age_ms: Number(age) };
  }

  /**
   * Opens a call with the next rollout of an instance of an open run.
   * @param how `lead`: the rollout's group is queued before this many waiting rollouts (negative: behind). `policy`: the rollout's changes to
   * the policy of the run
   */
  async open(
    request: CallRequest,
    gateway: string,
    { run_id, kind }: Pick<RunRecord, 'run_id' | 'kind'>,
    instanceId: string,
    lifeMs: number,
    how: { lead?: number; policy?: RolloutPolicy | null } = {},
  ): Promise<CallOpening> {
    const { lead = 0, policy = null } = how;
    const run = this.keys.run(run_id);
    const { alike, open } = this.keys.calls;
    const call_id = callIdOf(request);
    const first = await firstSequence(this.store, kind);
    const names = [alike(request.fingerprint), open, run.record, run.groups, run.appended, run.committed];
    const caller = [call_id, gateway, request.named ? 1 : 0];
    const [status, rollout_id = ''] = (await this.#open(
      [...names, this.keys.unfinished, run.policies],
      [
        ...[...caller, run_id, instanceId, Math.round(lifeMs), first, request.graceMs ?? '', lead],
        policy === null ? '' : JSON.stringify(policy),
      ],
    )) as string[];
    if (status !== 'opened') return { status: status as 'taken' | 'gone' };
    return { status, call_id, rollout_id };
  }

  /** Reports that the connection of a call closed before the answer. */
  async drop(callId: string, gateway: string, graceMs: number): Promise<void> {
    await this.#drop(this.#keysOf(callId), [callId, gateway, Math.round(graceMs), 'id']);
  }

  /** Releases the call that this request opened or claimed, for use if the reply was lost. */
  async abandon(request: CallRequest, gateway: string, graceMs: number): Promise<void> {
    const callId = callIdOf(request);
    await this.drop(callId, gateway, graceMs);
    await this.#drop(this.#keysOf(callId), [request.nonce, gateway, Math.round(graceMs), 'by']);
  }

  /** Reports that a call was answered. @param nameLifeMs life time of the call's name after the answer; 0: no name */
  async answered(callId: string, nameLifeMs: number): Promise<void> {
    await this.#answered(this.#keysOf(callId), [callId, Math.round(nameLifeMs)]);
  }

  /** Opens, once, a new rollout for a call whose rollout failed, and returns its id; null if the call or the run expired. */
  async retry(callId: string, failedRolloutId: string): Promise<string | null> {
    const { runId, instanceId } = parseRolloutId(failedRolloutId);
    const run = this.keys.run(runId);
    return (await this.#retry(
      [this.#alikeOf(callId), run.record, run.groups, this.keys.unfinished, run.policies],
      [callId, runId, instanceId, failedRolloutId],
    )) as string | null;
  }

  /**
   * Returns calls whose grace is over; cancel their rollouts, then `forget` the calls. Orphans of a dead gateway have their own grace or
   * `graceMs`, which starts when another gateway is alive; after 15 minutes without one, their grace is over.
   */
  async expired(graceMs: number): Promise<{ call_id: string; rollout_id: string }[]> {
    const { redis } = this;
    const { open, gateways } = this.keys.calls;
    const [now, beats] = await Promise.all([this.store.clock.ask(), redis.hgetall(gateways)]);
    const dead = Object.keys(beats).filter((gateway) => Number(beats[gateway]) < now - LIFE_MS);
    const alive = Object.keys(beats).length > dead.length;
    if (dead.length > 0) {
      for (const id of await redis.zrangebyscore(open, '+inf', '+inf')) {
        const args = [id, Math.round(graceMs), alive ? 1 : 0];
        await this.#orphan([open, this.#alikeOf(id), gateways], args);
      }
      if (alive) await redis.hdel(gateways, ...dead);
    }
    const due = await redis.zrangebyscore(open, '-inf', now, 'LIMIT', 0, SWEEP);
    const rollouts = await Promise.all(due.map((id) => this.#expire(this.#keysOf(id), [id, 0])));
    return due.flatMap((call_id, at) =>
      rollouts[at] === null ? [] : [{ call_id, rollout_id: String(rollouts[at]) }],
    );
  }

  async forget(callIds: readonly string[]): Promise<void> {
    for (const id of callIds) await this.#expire(this.#keysOf(id), [id, 1]);
  }

  /** Counts the unanswered calls of all gateways. */
  async count(): Promise<{ connected: number; orphaned: number }> {
    const { open } = this.keys.calls;
    const [all, connected] = await Promise.all([
      this.redis.zcard(open),
      this.redis.zcount(open, '+inf', '+inf'),
    ]);
    return { connected, orphaned: all - connected };
  }

  #keysOf(callId: string): string[] {
    return [this.#alikeOf(callId), this.keys.calls.open];
  }

  /** Returns the key of calls with an equal fingerprint; a call id is `fingerprint.nonce`. */
  #alikeOf(callId: string): string {
    return this.keys.calls.alike(callId.slice(0, callId.lastIndexOf('.')));
  }
}

const callIdOf = ({ fingerprint, nonce }: CallRequest): string => `${fingerprint}.${nonce}`;

/** Default time in ms within which a caller may return after its gateway died. */
const ORPHAN_GRACE_MS = 20_000;

/** Cancels the rollouts of calls whose grace is over, and returns their ids. Maintenance and gateways call this function. */
export async function cancelOrphans(
  { calls, cancel }: { calls: Pick<Calls, 'expired' | 'forget'>; cancel: Pick<Cancel, 'cancelRollouts'> },
  graceMs = ORPHAN_GRACE_MS,
): Promise<string[]> {
  const expired = await calls.expired(graceMs);
  const rollouts = expired.map(({ rollout_id }) => rollout_id);
  if (rollouts.length === 0) return [];
  await cancel.cancelRollouts(rollouts, 'orphan');
  await calls.forget(expired.map(({ call_id }) => call_id));
  return rollouts;
}
