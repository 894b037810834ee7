/**
 * Sessions in Redis: a record with a lease, a stream of what the driver said, and what was answered. Nodes need no inbound
 * port, and a repeated call of the driver finds what it did before.
 */
import type { Redis } from 'ioredis';
import { parseRolloutId } from '../records/ids.ts';
import { SessionAnswer, SessionEnd, SessionState, SessionWord } from '../records/session.ts';
import { poll } from '../waiting/poll.ts';
import { exponentialBackoff } from '../waiting/retry.ts';
import { parseCommitted } from './committed.ts';
import type { Keys } from './keys.ts';
import { listenForNotifications, type Notifications } from './notifications.ts';
import { loadScript } from './script.ts';

/** `forgotten`: so old that its answer is kept no more. `gap`: an earlier number is missing. `differs`: said before, otherwise. */
export type PostedCommand =
  | { status: 'said' }
  | { status: 'ended'; end: SessionEnd }
  | { status: 'forgotten' | 'gap'; said: number }
  | { status: 'submitted' | 'differs' | 'gone' };

export type DriverReply =
  | { status: 'answer'; answer: SessionAnswer }
  | { status: 'ended' | 'waiting' | 'gone' };

export type NextCommand =
  | { status: 'word'; seq: number; word: SessionWord }
  /** `gone`: the record is, or another attempt has the session. */
  | { status: 'none' | 'gone' };

export type Sessions = {
  /** Idempotent; renews the lease. True when the session is new. */
  create(session: { session_id: string; rollout_id: string; lease_ms: number }): Promise<boolean>;
  state(sessionId: string): Promise<SessionState | null>;
  /** Renews the leases of those that have not ended, and says which these are. */
  renew(sessionIds: readonly string[]): Promise<string[]>;
  /** The driver's command number `seq`, counted from 1 without gaps; 0 for the submission. Repeating it changes nothing. */
  say(sessionId: string, seq: number, word: SessionWord): Promise<PostedCommand>;
  /** Waits up to `blockMs` for the answer to command `seq`. */
  answer(sessionId: string, seq: number, blockMs: number, signal?: AbortSignal): Promise<DriverReply>;
  /** An attempt takes the session. `lost`: an earlier attempt ran commands, which nobody can run again honestly. */
  open(sessionId: string, worker: string, claim: string): Promise<'open' | 'lost' | 'lapsed' | 'gone'>;
  /** What was said after command `done`; `waitMs` is waited for it at most. */
  next(
    sessionId: string,
    holder: { worker: string; claim: string },
    done: number,
    waitMs: number,
    signal: AbortSignal,
  ): Promise<NextCommand>;
  /** Whether the driver's lease has run out, for the attempt that holds the session. */
  lapsed(sessionId: string, claim: string): Promise<boolean>;
  reply(sessionId: string, answer: SessionAnswer): Promise<void>;
  /** The first word stands. Nothing more is taken; what is there may be read for an hour. */
  end(sessionId: string, end: SessionEnd): Promise<void>;
  /** Sessions whose lease ran out `graceMs` ago, whoever should have noticed. */
  overdue(graceMs: number): Promise<string[]>;
  /** Ids of sessions that have not ended. */
  live(): Promise<string[]>;
};

/** A driver repeats its last command after a broken connection, not one of an hour ago. */
const KEPT = 16;
/** Renewed with every call; a session ends by its lease or its run's limits long before. */
const LIFE_MS = 6 * 3600_000;
const ENDED_LIFE_MS = 3600_000;
const WAKE_LIFE_S = 60;
/** Waiting is polling, first often: most commands take milliseconds. */
const pauseMs = exponentialBackoff(2, 100, 1.3);

export function createSessions(redis: Redis, keys: Keys, connect: () => Redis): Sessions {
  const create = loadScript(redis, 'session_create');
  const renew = loadScript(redis, 'session_renew');
  const say = loadScript(redis, 'session_say');
  const open = loadScript(redis, 'session_open');
  const next = loadScript(redis, 'session_next');
  const wakes = new Map<string, Notifications>();
  const wakesOf = (worker: string): Notifications => {
    const known = wakes.get(worker) ?? listenForNotifications(connect, keys.sessionWakes(worker));
    wakes.set(worker, known);
    return known;
  };
  const renewOne = async (id: string): Promise<boolean> => {
    const of = keys.session(id);
    const reply = await renew([of.record, keys.sessions, of.commands, of.answers], [id, LIFE_MS]);
    return reply === 1;
  };
  type Reply = ['command', number, string] | ['none' | 'gone' | 'lapsed'];
  const look = async (id: string, claim: string, done: number): Promise<Reply> => {
    const of = keys.session(id);
    return (await next([of.record, of.commands], [claim, done])) as Reply;
  };
  const ask = async (id: string, claim: string, done: number): Promise<NextCommand> => {
    const reply = await look(id, claim, done);
    if (reply[0] === 'command') {
      return { status: 'word', seq: reply[1], word: SessionWord.parse(JSON.parse(reply[2])) };
    }
    return { status: reply[0] === 'gone' ? 'gone' : 'none' };
  };
  return {
    async create({ session_id: id, rollout_id, lease_ms }) {
      const fields = ['rollout_id', rollout_id];
      const reply = await create(
        [keys.session(id).record, keys.sessions],
        [id, lease_ms, LIFE_MS, ...fields],
      );
      return (reply as number[])[0] === 1;
    },
    async state(id) {
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
    },
    async renew(ids) {
      const alive = await Promise.all(ids.map(renewOne));
      return ids.filter((_, index) => alive[index]);
    },
    async say(id, seq, word) {
      await renewOne(id);
      const of = keys.session(id);
      const text = JSON.stringify(SessionWord.parse(word));
      const reply = (await say([of.record, of.commands], [seq, text, KEPT, LIFE_MS])) as [string, string];
      const [status, detail] = reply;
      if (status === 'said') {
        if (detail) {
          const list = keys.sessionWakes(detail);
          await redis.multi().rpush(list, id).expire(list, WAKE_LIFE_S).exec();
        }
        return { status };
      }
      if (status === 'ended') return { status, end: SessionEnd.parse(detail) };
      if (status === 'forgotten' || status === 'gap') return { status, said: Number(detail) };
      return { status: status as 'submitted' | 'differs' | 'gone' };
    },
    async answer(id, seq, blockMs, signal) {
      const of = keys.session(id);
      const rollout = await redis.hget(of.record, 'rollout_id');
      if (rollout === null) return { status: 'gone' };
      const { committed } = keys.run(parseRolloutId(rollout).runId);
      const look = async (): Promise<DriverReply | null> => {
        // In this order: an answer that was given before the end is still an answer.
        const [ended, winner, text] = await Promise.all([
          redis.hget(of.record, 'ended'),
          redis.hget(committed, rollout),
          redis.hget(of.answers, String(seq)),
        ]);
        if (text !== null) return { status: 'answer', answer: SessionAnswer.parse(JSON.parse(text)) };
        return ended !== null || winner !== null ? { status: 'ended' } : null;
      };
      return (await poll(look, { pauseMs, withinMs: blockMs, signal })) ?? { status: 'waiting' };
    },
    async open(id, worker, claim) {
      const reply = await open([keys.session(id).record], [worker, claim]);
      return reply as 'open' | 'lost' | 'lapsed' | 'gone';
    },
    async next(id, { worker, claim }, done, waitMs, signal) {
      const first = await ask(id, claim, done);
      if (first.status !== 'none') return first;
      await wakesOf(worker).wait(id, waitMs, signal);
      return await ask(id, claim, done);
    },
    async lapsed(id, claim) {
      return (await look(id, claim, -1))[0] === 'lapsed';
    },
    async reply(id, answer) {
      const of = keys.session(id);
      await redis
        .multi()
        .hsetnx(of.answers, String(answer.seq), JSON.stringify(answer))
        .hdel(of.answers, String(answer.seq - KEPT))
        .pexpire(of.answers, LIFE_MS)
        .hset(of.record, 'answered', answer.seq)
        .exec();
    },
    async end(id, end) {
      const of = keys.session(id);
      const known = await redis.exists(of.record);
      const step = redis.multi().zrem(keys.sessions, id);
      if (known) step.hsetnx(of.record, 'ended', end);
      for (const key of Object.values(of)) step.pexpire(key, ENDED_LIFE_MS);
      await step.exec();
    },
    async overdue(graceMs) {
      const [seconds = 0, micros = 0] = (await redis.time()).map(Number);
      const now = seconds * 1000 + Math.floor(micros / 1000);
      return await redis.zrangebyscore(keys.sessions, 0, now - graceMs);
    },
    live: () => redis.zrange(keys.sessions, '0', '-1'),
  };
}
