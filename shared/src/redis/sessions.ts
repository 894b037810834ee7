/** Stores sessions in Redis: a record with a lease, a stream of the driver's commands, and the answers. Nodes need no open port. */
import type { z } from 'zod';
import { parseRolloutId } from '../records/ids.ts';
import {
  SessionAnswer,
  type SessionClock,
  SessionEnd,
  SessionInput,
  type SessionInputs,
  SessionState,
} from '../records/session.ts';
import { poll } from '../waiting/poll.ts';
import { exponentialBackoff } from '../waiting/retry.ts';
import { parseCommitted } from './commit.ts';
import { listenForNotifications, type Notifications } from './notifications.ts';
import { Part } from './part.ts';

/** `forgotten`: the command is no longer stored. `gap`: an earlier number is missing. `differs`: another command has this number. */
export type PostedCommand =
  | { status: 'posted' }
  | { status: 'ended'; end: SessionEnd }
  | { status: 'forgotten' | 'gap'; posted: number }
  | { status: 'submitted' | 'differs' | 'gone' };

export type DriverReply =
  | { status: 'answer'; answer: SessionAnswer; content: Buffer | null }
  /** The answer is stored, its content is not: a later input was answered. */
  | { status: 'forgotten' }
  | { status: 'ended' | 'waiting' | 'gone' };

/** `pausedMs`: total time in which the clock of the session was stopped. */
export type NextCommand =
  | { status: 'input'; pausedMs: number; seq: number; input: SessionInput; content: Buffer | null }
  | { status: 'none'; pausedMs: number }
  /** The record expired, or the session is assigned to another attempt. */
  | { status: 'gone' };

/** The reply of session_clock.lua. `busy`: an input has no answer yet. */
export type ClockReply = 'ok' | 'busy' | 'ended' | 'gone';

/** The reply of session_open.lua. */
type Opening = 'open' | 'lost' | 'expired' | 'gone';
/** The reply of session_next.lua. */
type NextReply = ['command', number, number, string] | ['none' | 'expired', number] | ['gone'];
/** Pseudo number of a command, to check only the lease. */
const LEASE_ONLY = -1;
/** Number of stored commands and answers; a driver repeats only its last commands. */
const STORED_ANSWERS = 16;
/** Life time of a session, which the driver's calls renew. */
const LIFE_MS = 6 * 3600_000;
const ENDED_LIFE_MS = 3600_000;
const NOTIFICATION_LIFE_S = 60;
/** Pauses in ms between two reads: short at first, because most commands take milliseconds. */
const pauseMs = exponentialBackoff(2, 100, 1.3);

type NewSession = {
  session_id: string;
  rollout_id: string;
  lease_ms: number;
  inputs?: z.infer<typeof SessionInputs>;
  clock?: z.infer<typeof SessionClock>;
};

export class Sessions extends Part {
  readonly #create = this.script('session_create');
  readonly #renew = this.script('session_renew');
  readonly #post = this.script('session_post');
  readonly #open = this.script('session_open');
  readonly #next = this.script('session_time', 'session_next');
  readonly #reply = this.script('session_reply');
  readonly #clock = this.script('session_time', 'session_clock');
  readonly #listening = new Map<string, Notifications>();

  /** Creates a session or renews its lease; true if the session is new. */
  async create(session: NewSession): Promise<boolean> {
    const { session_id: id, rollout_id, lease_ms, inputs = 'commands', clock = 'wall' } = session;
    const names = [this.keys.session(id).record, this.keys.sessions];
    const fields = Object.entries({ rollout_id, inputs, clock }).flat();
    const reply = await this.#create(names, [id, lease_ms, LIFE_MS, ...fields]);
    return (reply as number[])[0] === 1;
  }

  async state(id: string): Promise<SessionState | null> {
    const hash = await this.redis.hgetall(this.keys.session(id).record);
    const { rollout_id } = hash;
    if (rollout_id === undefined) return null;
    const committed = await this.redis.hget(this.#committedOf(rollout_id), rollout_id);
    const end = hash.ended ? SessionEnd.parse(hash.ended) : null;
    return SessionState.parse({
      session_id: id,
      rollout_id,
      state: committed ? 'ended' : end ? 'grading' : hash.worker ? 'open' : 'waiting',
      end: end ?? (committed && parseCommitted(committed).outcome === 'cancelled' ? 'cancelled' : null),
      said: Number(hash.said),
      answered: Number(hash.answered),
      lease_seconds: Number(hash.lease_ms) / 1000,
      inputs: hash.inputs ?? 'commands',
      clock: hash.clock ?? 'wall',
      paused: hash.paused_at !== undefined,
    });
  }

  /** Renews leases. Returns the ids of the sessions that have not ended. */
  async renew(ids: readonly string[]): Promise<string[]> {
    const alive = await Promise.all(
      ids.map((id) => {
        const of = this.keys.session(id);
        return this.#renew(
          [of.record, this.keys.sessions, of.commands, of.answers, of.contents],
          [id, LIFE_MS],
        );
      }),
    );
    return ids.filter((_, index) => alive[index] === 1);
  }

  /**
   * Posts input number `seq`, counted from 1 without gaps, or the submission (0). A repeated post has no effect.
   *
   * @param content the bytes of an input `write`
   */
  async post(id: string, seq: number, input: SessionInput, content?: Buffer): Promise<PostedCommand> {
    await this.renew([id]);
    const of = this.keys.session(id);
    const text = JSON.stringify(SessionInput.parse(input));
    const entry = [seq, text, STORED_ANSWERS, LIFE_MS, ...(content ? [content] : [])];
    const reply = await this.#post([of.record, of.commands, of.contents], entry);
    const [status, detail] = reply as [string, string];
    if (status === 'posted') {
      if (detail) {
        const list = this.keys.sessionNotifications(detail);
        await this.redis.multi().rpush(list, id).expire(list, NOTIFICATION_LIFE_S).exec();
      }
      return { status };
    }
    if (status === 'ended') return { status, end: SessionEnd.parse(detail) };
    if (status === 'forgotten' || status === 'gap') return { status, posted: Number(detail) };
    return { status: status as 'submitted' | 'differs' | 'gone' };
  }

  /** Waits up to `blockMs` for the answer to command `seq`. */
  async answer(id: string, seq: number, blockMs: number, signal?: AbortSignal): Promise<DriverReply> {
    const { redis } = this;
    const of = this.keys.session(id);
    const rollout = await redis.hget(of.record, 'rollout_id');
    if (rollout === null) return { status: 'gone' };
    const committed = this.#committedOf(rollout);
    const look = async (): Promise<DriverReply | null> => {
      // All values are read at once, and an answer has precedence over the end of the session.
      const [ended, winner, text] = await Promise.all([
        redis.hget(of.record, 'ended'),
        redis.hget(committed, rollout),
        redis.hget(of.answers, String(seq)),
      ]);
      if (text !== null) return await this.#withContent(id, SessionAnswer.parse(JSON.parse(text)));
      return ended !== null || winner !== null ? { status: 'ended' } : null;
    };
    return (await poll(look, { pauseMs, withinMs: blockMs, signal })) ?? { status: 'waiting' };
  }

  /** Assigns the session to an attempt. `lost`: an earlier attempt ran commands, which cannot be repeated. */
  async open(id: string, worker: string, claim: string): Promise<Opening> {
    return (await this.#open([this.keys.session(id).record], [worker, claim])) as Opening;
  }

  /** Waits at most `waitMs` for the command after number `done`. */
  async next(
    id: string,
    { worker, claim }: { worker: string; claim: string },
    done: number,
    waitMs: number,
    signal: AbortSignal,
  ): Promise<NextCommand> {
    const first = await this.#nextCommand(id, claim, done);
    if (first.status !== 'none') return first;
    await this.#notificationsFor(worker).wait(id, waitMs, signal);
    return await this.#nextCommand(id, claim, done);
  }

  /** Returns whether the lease of a session has expired; false if the session is assigned to another attempt. */
  async isExpired(id: string, claim: string): Promise<boolean> {
    return (await this.#askNext(id, claim, LEASE_ONLY))[0] === 'expired';
  }

  /** Returns the total time in ms in which the clock of the session was stopped; 0 if the session has another attempt. */
  async pausedMs(id: string, claim: string): Promise<number> {
    return (await this.#askNext(id, claim, LEASE_ONLY))[1] ?? 0;
  }

  /** Stops the clock of a session until it is started, or until the next input. */
  async setClock(id: string, paused: boolean): Promise<ClockReply> {
    await this.renew([id]);
    return (await this.#clock([this.keys.session(id).record], [paused ? 1 : 0])) as ClockReply;
  }

  async reply(id: string, answer: SessionAnswer, content?: Buffer): Promise<void> {
    const of = this.keys.session(id);
    const stored = [answer.seq, JSON.stringify(answer), STORED_ANSWERS, LIFE_MS];
    await this.#reply([of.record, of.answers, of.contents], [...stored, ...(content ? [content] : [])]);
  }

  /** Ends a session; its data can be read for an hour. The reason of the first call remains. */
  async end(id: string, end: SessionEnd): Promise<void> {
    const of = this.keys.session(id);
    const exists = await this.redis.exists(of.record);
    const step = this.redis.multi().zrem(this.keys.sessions, id);
    if (exists) step.hsetnx(of.record, 'ended', end);
    for (const key of Object.values(of)) step.pexpire(key, ENDED_LIFE_MS);
    await step.exec();
  }

  /** Returns the sessions whose lease expired at least `graceMs` ago and that have not ended. */
  async overdue(graceMs: number): Promise<string[]> {
    const now = await this.store.clock.ask();
    return await this.redis.zrangebyscore(this.keys.sessions, 0, now - graceMs);
  }

  /** Returns the sessions that have not ended. */
  async live(): Promise<string[]> {
    return await this.redis.zrange(this.keys.sessions, '0', '-1');
  }

  async #withContent(id: string, answer: SessionAnswer): Promise<DriverReply> {
    if (!answer.content) return { status: 'answer', answer, content: null };
    const content = await this.redis.hgetBuffer(this.keys.session(id).contents, `out:${answer.seq}`);
    return content ? { status: 'answer', answer, content } : { status: 'forgotten' };
  }

  #committedOf(rolloutId: string): string {
    return this.keys.run(parseRolloutId(rolloutId).runId).committed;
  }

  #notificationsFor(worker: string): Notifications {
    const notifications =
      this.#listening.get(worker) ??
      listenForNotifications(this.store.connect, this.keys.sessionNotifications(worker));
    this.#listening.set(worker, notifications);
    return notifications;
  }

  async #askNext(id: string, claim: string, done: number): Promise<NextReply> {
    const of = this.keys.session(id);
    return (await this.#next([of.record, of.commands], [claim, done])) as NextReply;
  }

  async #nextCommand(id: string, claim: string, done: number): Promise<NextCommand> {
    const reply = await this.#askNext(id, claim, done);
    if (reply[0] === 'gone') return { status: 'gone' };
    const [status, pausedMs, seq, text] = reply;
    if (status !== 'command') return { status: 'none', pausedMs };
    const input = SessionInput.parse(JSON.parse(text));
    const content =
      input.kind === 'write'
        ? await this.redis.hgetBuffer(this.keys.session(id).contents, `in:${seq}`)
        : null;
    return { status: 'input', pausedMs, seq, input, content };
  }
}
