/**
 * What runs now, for those who watch: where each rollout is, and its latest turns. Bounded, short-lived and never
 * needed: a result does not depend on it, and everything here may vanish at any moment.
 */
import type { ChainableCommander, Redis } from 'ioredis';
import { z } from 'zod';
import { Message } from '../records/trajectory.ts';
import { sleep } from '../waiting/sleep.ts';
import type { Keys } from './keys.ts';

/** Where a rollout that runs is. */
export const LiveRollout = z.object({
  rollout_id: z.string(),
  attempt: z.number().int(),
  worker: z.string(),
  node: z.string(),
  /** A stage of `Seconds`, or `starting`. */
  stage: z.string(),
  turns: z.number().int(),
  /** Milliseconds since the epoch: of the claim, and of the last change. */
  claimed_at: z.number(),
  at: z.number(),
});
export type LiveRollout = z.infer<typeof LiveRollout>;

/** One turn as it is watched: token ids left out, long texts cut. The first one also carries the prompt. */
export const LiveTurn = z.object({
  attempt: z.number().int(),
  /** From 1. */
  turn: z.number().int(),
  /** Milliseconds since the epoch. */
  at: z.number(),
  messages: z.array(Message),
  /** Position of the assistant's message in `messages`. */
  answer: z.number().int(),
  finish_reason: z.string().nullable(),
  model_seconds: z.number(),
  usage: z.object({ prompt_tokens: z.number(), completion_tokens: z.number() }).nullable(),
  policy_version: z.object({ start: z.string().nullable(), end: z.string().nullable() }),
  commands: z.array(
    z.object({
      command: z.string(),
      exit_code: z.number().nullable(),
      seconds: z.number(),
      output_bytes: z.number(),
      note: z.enum(['timed_out', 'shell_reopened', 'killed_by_limit']).nullable(),
    }),
  ),
});
export type LiveTurn = z.infer<typeof LiveTurn>;

export type LiveTurns = { turns: LiveTurn[] /** Read on from here. */; last_id: string };

export type Live = {
  /** Tells where a rollout is. */
  mark(state: LiveRollout): Promise<void>;
  /** Adds a turn; of a rollout's turns the latest `keep` stay. */
  turn(rolloutId: string, turn: LiveTurn, keep: number): Promise<void>;
  /** It runs no more; its turns stay for a minute, so that who follows sees the last one. */
  end(worker: string, rolloutId: string): Promise<void>;
  /** What runs on these workers; of one run, if given. */
  running(workers: readonly string[], runId?: string): Promise<LiveRollout[]>;
  /** Turns after `afterId` (`0`: all that are kept). */
  turns(rolloutId: string, afterId?: string): Promise<LiveTurns>;
};

/** Longer than any one turn; a worker that dies leaves its traces no longer than this. */
const LIFE_SECONDS = 3600;
const AFTERGLOW_SECONDS = 60;
/** What changes within this time is written in one exchange: a worker's rollouts end some hundred turns a second. */
const GATHER_MS = 100;
/** Most bytes of one turn's entry. */
const ENTRY_BYTES = 16 * 1024;

export function createLive(redis: Redis, keys: Keys): Live {
  const write = gatherWrites(redis);
  return {
    mark(state) {
      const key = keys.live.worker(state.worker);
      const text = JSON.stringify(state);
      return write((all) => all.hset(key, state.rollout_id, text).expire(key, LIFE_SECONDS));
    },
    turn(rolloutId, turn, keep) {
      const key = keys.live.turns(rolloutId);
      const text = encodeLiveTurn(turn);
      return write((all) => all.xadd(key, 'MAXLEN', keep, '*', 't', text).expire(key, LIFE_SECONDS));
    },
    end: (worker, rolloutId) =>
      write((all) =>
        all.hdel(keys.live.worker(worker), rolloutId).expire(keys.live.turns(rolloutId), AFTERGLOW_SECONDS),
      ),
    async running(workers, runId) {
      const states = await Promise.all(workers.map((worker) => redis.hvals(keys.live.worker(worker))));
      const all = states.flat().map((text) => LiveRollout.parse(JSON.parse(text)));
      return runId === undefined ? all : all.filter((one) => one.rollout_id.startsWith(`${runId}.`));
    },
    async turns(rolloutId, afterId = '0') {
      const entries = await redis.xrange(keys.live.turns(rolloutId), `(${afterId}`, '+');
      return {
        turns: entries.map(([, fields]) => LiveTurn.parse(JSON.parse(fields[1] ?? ''))),
        last_id: entries.at(-1)?.[0] ?? afterId,
      };
    },
  };
}

type Write = (all: ChainableCommander) => unknown;

/** Writes come in order; the promise of each is that of the exchange that carries it. */
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

/** The turn as JSON of at most 16 KiB or so: the longest texts lose their middle until it fits. */
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
