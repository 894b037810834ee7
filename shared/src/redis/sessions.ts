/** Stores sessions in Redis: a record with a lease, a stream of the driver's commands, and the answers. Nodes need no open port. */
import type { Redis } from 'ioredis';
import { parseRolloutId } from '../records/ids.ts';
import { SessionAnswer, SessionEnd, SessionInput, SessionState } from '../records/session.ts';
import { poll } from '../waiting/poll.ts';
import { exponentialBackoff } from '../waiting/retry.ts';
import { parseCommitted } from './commit.ts';
import type { Keys } from './keys.ts';
import { listenForNotifications, type Notifications } from './notifications.ts';
import { loadScript } from './script.ts';

/** `forgotten`: the answer has expired. `gap`: an earlier number is missing. `differs`: another command has this number. */
export type PostedCommand =
  | { status: 'posted' }
  | { status: 'ended'; end: SessionEnd }
  | { status: 'forgotten' | 'gap'; posted: number }
  | { status: 'submitted' | 'differs' | 'gone' };

export type DriverReply =
  | { status: 'answer'; answer: SessionAnswer }
  | { status: 'ended' | 'waiting' | 'gone' };

export type NextCommand =
  | { status: 'input'; seq: number; input: SessionInput }
  /** `gone`: the record expired, or the session is assigned to another attempt. */
  | { status: 'none' | 'gone' };

export type Sessions = {
  /** Creates a session or renews its lease; true if the session is new. */
  create(session: { session_id: string; rollout_id: string; lease_ms: number }): Promise<boolean>;
  state(sessionId: string): Promise<SessionState | null>;
  /** Renews leases. Returns the ids of the sessions that have not ended. */
  renew(sessionIds: readonly string[]): Promise<string[]>;
  /** Posts command number `seq`, counted from 1 without gaps, or the submission (0). A repeated post has no effect. */
  post(sessionId: string, seq: number, input: SessionInput): Promise<PostedCommand>;
  /** Waits up to `blockMs` for the answer to command `seq`. */
  answer(sessionId: string, seq: number, blockMs: number, signal?: AbortSignal): Promise<DriverReply>;
  /** Assigns the session to an attempt. `lost`: an earlier attempt ran commands, which cannot be repeated. */
  open(sessionId: string, worker: string, claim: string): Promise<'open' | 'lost' | 'expired' | 'gone'>;
  /** Waits at most `waitMs` for the command after number `done`. */
  next(
    sessionId: string,
    holder: { worker: string; claim: string },
    done: number,
    waitMs: number,
    signal: AbortSignal,
  ): Promise<NextCommand>;
  /** Returns whether the lease of a session has expired; false if the session is assigned to another attempt. */
  isExpired(sessionId: string, claim: string): Promise<boolean>;
  reply(sessionId: string, answer: SessionAnswer): Promise<void>;
  /** Ends a session; its data can be read for an hour. The reason of the first call remains. */
  end(sessionId: string, end: SessionEnd): Promise<void>;
  /** Returns the sessions whose lease expired at least `graceMs` ago and that have not ended. */
  overdue(graceMs: number): Promise<string[]>;
  /** Returns the sessions that have not ended. */
  live(): Promise<string[]>;
};

/** Number of stored commands and answers; a driver repeats only its last commands. */
const STORED_ANSWERS = 16;
/** Life time of a session, which the driver's calls renew. */
const LIFE_MS = 6 * 3600_000;
const ENDED_LIFE_MS = 3600_000;
const NOTIFICATION_LIFE_S = 60;
/** Pauses in ms between two reads: short at first, because most commands take milliseconds. */
const pauseMs = exponentialBackoff(2, 100, 1.3);

type Store = {
  redis: Redis;
  keys: Keys;
  scripts: ReturnType<typeof sessionScripts>;
  notificationsFor(worker: string): Notifications;
};

const sessionScripts = (redis: Redis) => ({
  create: loadScript(redis, 'session_create'),
  renew: loadScript(redis, 'session_renew'),
  post: loadScript(redis, 'session_post'),
  open: loadScript(redis, 'session_open'),
  next: loadScript(redis, 'session_next'),
});

export function createSessions(redis: Redis, keys: Keys, connect: () => Redis): Sessions {
  const listening = new Map<string, Notifications>();
  const notificationsFor = (worker: string): Notifications => {
    const notifications =
      listening.get(worker) ?? listenForNotifications(connect, keys.sessionNotifications(worker));
    listening.set(worker, notifications);
    return notifications;
  };
  const store: Store = { redis, keys, scripts: sessionScripts(redis), notificationsFor };
  return {
    async create({ session_id: id, rollout_id, lease_ms }) {
      const names = [keys.session(id).record, keys.sessions];
      const reply = await store.scripts.create(names, [id, lease_ms, LIFE_MS, 'rollout_id', rollout_id]);
      return (reply as number[])[0] === 1;
    },
    state: (id) => readState(store, id),
    async renew(ids) {
      const alive = await Promise.all(ids.map((id) => renewLease(store, id)));
      return ids.filter((_, index) => alive[index]);
    },
    post: (id, seq, input) => postCommand(store, id, seq, input),
    answer: (id, seq, blockMs, signal) => waitForAnswer(store, id, seq, { withinMs: blockMs, signal }),
    async open(id, worker, claim) {
      const reply = await store.scripts.open([keys.session(id).record], [worker, claim]);
      return reply as 'open' | 'lost' | 'expired' | 'gone';
    },
    async next(id, { worker, claim }, done, waitMs, signal) {
      const first = await nextCommand(store, id, claim, done);
      if (first.status !== 'none') return first;
      await notificationsFor(worker).wait(id, waitMs, signal);
      return await nextCommand(store, id, claim, done);
    },
    isExpired: async (id, claim) => (await askNext(store, id, claim, LEASE_ONLY))[0] === 'expired',
    reply: (id, answer) => writeAnswer(store, id, answer),
    end: (id, end) => endSession(store, id, end),
    async overdue(graceMs) {
      const [seconds = 0, micros = 0] = (await redis.time()).map(Number);
      const now = seconds * 1000 + Math.floor(micros / 1000);
      return await redis.zrangebyscore(keys.sessions, 0, now - graceMs);
    },
    live: () => redis.zrange(keys.sessions, '0', '-1'),
  };
}

async function readState({ redis, keys }: Store, id: string): Promise<SessionState | null> {
  const hash = await redis.hgetall(keys.session(id).record);
  const { rollout_id } = hash;
  if (rollout_id === undefined) return null;
  const committed = await redis.hget(keys.run(parseRolloutId(rollout_id).runId).committed, rollout_id);
  const end = hash.ended ? SessionEnd.parse(hash.ended) : null;
  return SessionState.parse({
    session_id: id,
    rollout_id,
    state: committed ? 'ended' : end ? 'grading' : hash.worker ? 'open' : 'waiting',
    end: end ?? (committed && parseCommitted(committed).outcome === 'cancelled' ? 'cancelled' : null),
    said: Number(hash.said),
    answered: Number(hash.answered),
    lease_seconds: Number(hash.lease_ms) / 1000,
  });
}

async function renewLease({ keys, scripts }: Store, id: string): Promise<boolean> {
  const of = keys.session(id);
  return (await scripts.renew([of.record, keys.sessions, of.commands, of.answers], [id, LIFE_MS])) === 1;
}

async function postCommand(
  store: Store,
  id: string,
  seq: number,
  input: SessionInput,
): Promise<PostedCommand> {
  const { redis, keys, scripts } = store;
  await renewLease(store, id);
  const of = keys.session(id);
  const text = JSON.stringify(SessionInput.parse(input));
  const reply = await scripts.post([of.record, of.commands], [seq, text, STORED_ANSWERS, LIFE_MS]);
  const [status, detail] = reply as [string, string];
  if (status === 'posted') {
    if (detail) {
      const list = keys.sessionNotifications(detail);
      await redis.multi().rpush(list, id).expire(list, NOTIFICATION_LIFE_S).exec();
    }
    return { status };
  }
  if (status === 'ended') return { status, end: SessionEnd.parse(detail) };
  if (status === 'forgotten' || status === 'gap') return { status, posted: Number(detail) };
  return { status: status as 'submitted' | 'differs' | 'gone' };
}

async function waitForAnswer(
  { redis, keys }: Store,
  id: string,
  seq: number,
  wait: { withinMs: number; signal: AbortSignal | undefined },
): Promise<DriverReply> {
  const of = keys.session(id);
  const rollout = await redis.hget(of.record, 'rollout_id');
  if (rollout === null) return { status: 'gone' };
  const { committed } = keys.run(parseRolloutId(rollout).runId);
  const look = async (): Promise<DriverReply | null> => {
    // All values are read at once, and an answer has precedence over the end of the session.
    const [ended, winner, text] = await Promise.all([
      redis.hget(of.record, 'ended'),
      redis.hget(committed, rollout),
      redis.hget(of.answers, String(seq)),
    ]);
    if (text !== null) return { status: 'answer', answer: SessionAnswer.parse(JSON.parse(text)) };
    return ended !== null || winner !== null ? { status: 'ended' } : null;
  };
  return (await poll(look, { pauseMs, ...wait })) ?? { status: 'waiting' };
}

/** The reply of session_next.lua. */
type NextReply = ['command', number, string] | ['none' | 'gone' | 'expired'];
/** Pseudo number of a command, to check only the lease. */
const LEASE_ONLY = -1;

async function askNext(
  { keys, scripts }: Store,
  id: string,
  claim: string,
  done: number,
): Promise<NextReply> {
  const of = keys.session(id);
  return (await scripts.next([of.record, of.commands], [claim, done])) as NextReply;
}

async function nextCommand(store: Store, id: string, claim: string, done: number): Promise<NextCommand> {
  const reply = await askNext(store, id, claim, done);
  if (reply[0] !== 'command') return { status: reply[0] === 'gone' ? 'gone' : 'none' };
  return { status: 'input', seq: reply[1], input: SessionInput.parse(JSON.parse(reply[2])) };
}

async function writeAnswer({ redis, keys }: Store, id: string, answer: SessionAnswer): Promise<void> {
  const of = keys.session(id);
  await redis
    .multi()
    .hsetnx(of.answers, String(answer.seq), JSON.stringify(answer))
    .hdel(of.answers, String(answer.seq - STORED_ANSWERS))
    .pexpire(of.answers, LIFE_MS)
    .hset(of.record, 'answered', answer.seq)
    .exec();
}

async function endSession({ redis, keys }: Store, id: string, end: SessionEnd): Promise<void> {
  const of = keys.session(id);
  const exists = await redis.exists(of.record);
  const step = redis.multi().zrem(keys.sessions, id);
  if (exists) step.hsetnx(of.record, 'ended', end);
  for (const key of Object.values(of)) step.pexpire(key, ENDED_LIFE_MS);
  await step.exec();
}
