/** Stores the state and latest turns of running rollouts for a short time, for users who watch them. Results do not depend on them. */
import type { ChainableCommander, Redis } from 'ioredis';
import { z } from 'zod';
import { CommandRecord, LineKind, Message } from '../records/trajectory.ts';
import { sleep } from '../waiting/sleep.ts';
import type { Store } from './part.ts';

export const LiveRollout = z.object({
  rollout_id: z.string(),
  attempt: z.number().int(),
  worker: z.string(),
  node: z.string(),
  /** Stage of the rollout: a key of `Seconds`, or `starting`. */
  stage: z.string(),
  turns: z.number().int(),
  /** Times of the claim and of the last change, in milliseconds since the epoch. */
  claimed_at: z.number(),
  at: z.number(),
});
export type LiveRollout = z.infer<typeof LiveRollout>;

/** A turn without token ids and with shortened texts. The first turn also contains the prompt. */
export const LiveTurn = z.object({
  attempt: z.number().int(),
  /** Number of the turn, from 1. */
  turn: z.number().int(),
  /** Time of the turn in milliseconds since the epoch. */
  at: z.number(),
  /** Line of an agent that comes as a program, with the kind that it has now. The messages then begin after the line's answer before. */
  line: z.object({ id: z.string(), kind: LineKind.catch('main') }).optional(),
  messages: z.array(Message),
  /** Position of the assistant's message in `messages`. */
  answer: z.number().int(),
  finish_reason: z.string().nullable(),
  model_seconds: z.number(),
  usage: z.object({ prompt_tokens: z.number(), completion_tokens: z.number() }).nullable(),
  policy_version: z.object({ start: z.string().nullable(), end: z.string().nullable() }),
  commands: z.array(CommandRecord),
});
export type LiveTurn = z.infer<typeof LiveTurn>;

/** Life time of the state and turns of a rollout: longer than any turn. */
const LIFE_SECONDS = 3600;
const AFTERGLOW_SECONDS = 60;
/** Writes within this time in ms are sent together, because a worker may end hundreds of turns per second. */
const GATHER_MS = 100;
const ENTRY_BYTES = 16 * 1024;

export type Live = ReturnType<typeof createLive>;

export function createLive({ redis, keys }: Store) {
  const write = gatherWrites(redis);
  return {
    mark(state: LiveRollout): Promise<void> {
      const key = keys.live.worker(state.worker);
      const text = JSON.stringify(state);
      return write((all) => all.hset(key, state.rollout_id, text).expire(key, LIFE_SECONDS));
    },
    /** Adds a turn and removes all but the latest `most`. */
    turn(rolloutId: string, turn: LiveTurn, most: number): Promise<void> {
      const key = keys.live.turns(rolloutId);
      const text = encodeLiveTurn(turn);
      return write((all) => all.xadd(key, 'MAXLEN', most, '*', 't', text).expire(key, LIFE_SECONDS));
    },
    /** Removes the state of an ended rollout, and its turns after a minute. */
    end: (worker: string, rolloutId: string): Promise<void> =>
      write((all) =>
        all.hdel(keys.live.worker(worker), rolloutId).expire(keys.live.turns(rolloutId), AFTERGLOW_SECONDS),
      ),
    /** Returns the running rollouts of these workers, of one run or of all runs. */
    async running(workers: readonly string[], runId?: string): Promise<LiveRollout[]> {
      const states = await Promise.all(workers.map((worker) => redis.hvals(keys.live.worker(worker))));
      const all = states.flat().map((text) => LiveRollout.parse(JSON.parse(text)));
      return runId === undefined ? all : all.filter((one) => one.rollout_id.startsWith(`${runId}.`));
    },
    /** Returns turns after `afterId` (`0`: all), and the id of the last turn: pass it as `afterId` to get later turns. */
    async turns(rolloutId: string, afterId = '0'): Promise<{ turns: LiveTurn[]; last_id: string }> {
      const entries = await redis.xrange(keys.live.turns(rolloutId), `(${afterId}`, '+');
      return {
        turns: entries.map(([, fields]) => LiveTurn.parse(JSON.parse(fields[1] ?? ''))),
        last_id: entries.at(-1)?.[0] ?? afterId,
      };
    },
  };
}

type Write = (all: ChainableCommander) => unknown;

/** Batches writes in order; the returned promise resolves when the batch is written. */
function gatherWrites(redis: Redis): (write: Write) => Promise<void> {
  let gathered: Write[] = [];
  let sent: Promise<void> | null = null;
  let sentAt = Number.NEGATIVE_INFINITY;
  const send = async (): Promise<void> => {
    await sleep(Math.max(0, sentAt + GATHER_MS - performance.now()));
    const writes = gathered;
    gathered = [];
    sent = null;
    sentAt = performance.now();
    const all = redis.multi();
    for (const write of writes) write(all);
    await all.exec();
  };
  return (write) => {
    gathered.push(write);
    sent ??= send();
    return sent;
  };
}

/** Returns the turn as JSON of about 16,384 characters at most. Shortens long texts, or, if necessary, removes messages and commands. */
export function encodeLiveTurn(turn: LiveTurn): string {
  let text = JSON.stringify(turn);
  for (let most = 4096; text.length > ENTRY_BYTES && most >= 64; most /= 2) {
    text = JSON.stringify(turn, (_key, value) =>
      typeof value === 'string' ? middleCut(value, most) : value,
    );
  }
  return text.length <= ENTRY_BYTES
    ? text
    : JSON.stringify({ ...turn, messages: [], answer: 0, commands: [] });
}

function middleCut(text: string, most: number): string {
  if (text.length <= most) return text;
  const half = Math.floor(most / 2);
  return `${text.slice(0, half)}\n[… ${text.length - 2 * half} characters, the result will have them …]\n${text.slice(-half)}`;
}
