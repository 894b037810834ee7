/** The journal: every attempt at a rollout, written when claimed and when it ends. What never ended is a crash. */
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { FAILURE_CLASSES, FailureStage } from '../failure.ts';
import { newId, parseRolloutId } from '../ids.ts';
import { CancelReason, Outcome } from '../result.ts';
import { parseCommitted } from './committed.ts';
import { byRun } from './grouping.ts';
import type { Keys } from './keys.ts';
import { loadScript } from './script.ts';

/** `done`: a result was committed (by this attempt or, seen late, another). `drained`: given back, costs nothing. */
export const AttemptClass = z.enum(['done', 'drained', ...FAILURE_CLASSES]);
export type AttemptClass = z.infer<typeof AttemptClass>;

export const AttemptEnd = z.object({
  stage: FailureStage.nullable(),
  class: AttemptClass,
  /** One line of at most 200 characters. */
  cause: z.string().nullable(),
  /** Where the work lies that the next attempt need not do again; absent: it starts anew. */
  kept: z.string().nullable().optional(),
});
export type AttemptEnd = z.infer<typeof AttemptEnd>;

export const JournalEntry = z.object({
  attempt: z.number().int().positive(),
  worker: z.string(),
  node: z.string(),
  /** Milliseconds since the epoch, by Redis's clock. */
  claimed_at: z.number(),
  ended_at: z.number().nullable(),
  end: AttemptEnd.nullable(),
});
export type JournalEntry = z.infer<typeof JournalEntry>;

export type Claim =
  | {
      status: 'claimed';
      attempt: number;
      previous: JournalEntry[];
      /** Why it was cancelled meanwhile; null: it was not. */
      cancelled: CancelReason | null;
    }
  | { status: 'committed'; attempt: number; outcome: Outcome }
  /** The run stands still: nothing was opened. */
  | { status: 'paused' }
  | { status: 'gone' };

export type Journal = {
  /** Opens the next attempt, unless the rollout is committed already or its run is gone. */
  claim(rolloutId: string, by: { worker: string; node: string }): Promise<Claim>;
  /** The first word about an attempt stands; nothing happens when its run is gone. */
  end(rolloutId: string, attempt: number, end: AttemptEnd): Promise<void>;
  read(rolloutId: string): Promise<JournalEntry[]>;
  /** By rollout, for those of the run that were begun more than once and have no result: few, however large the run. */
  readRetried(runId: string): Promise<Map<string, JournalEntry[]>>;
  /** Of these running attempts, the rollouts that another attempt has claimed or committed since, or whose run is gone. */
  superseded(running: readonly { rollout_id: string; attempt: number }[]): Promise<Set<string>>;
};

const Entries = z.array(JournalEntry);
const CAUSE_LENGTH = 200;
/** Journals read at once: neither Redis nor the event loop of whoever reads stands still for the rest of a large run. */
const SCAN_COUNT = 500;

export function createJournal(redis: Redis, keys: Keys): Journal {
  const scripts = { claim: loadScript(redis, 'claim'), end: loadScript(redis, 'end') };
  const of = (rolloutId: string) => keys.run(parseRolloutId(rolloutId).runId);
  return {
    async claim(rolloutId, { worker, node }) {
      const run = of(rolloutId);
      const reply = (await scripts.claim(
        [
          run.record,
          run.committed,
          run.journal,
          run.cancelled,
          run.paused,
          run.instances,
          run.patches,
          run.results,
          run.groups,
          run.counts,
          run.appended,
        ],
        [rolloutId, worker, node, newId(), parseRolloutId(rolloutId).instanceId],
      )) as ['claimed' | 'committed' | 'paused' | 'gone', string, string];
      if (reply[0] === 'gone' || reply[0] === 'paused') return { status: reply[0] };
      if (reply[0] === 'committed') {
        return { status: 'committed', attempt: Number(reply[1]), outcome: Outcome.parse(reply[2]) };
      }
      const entries = Entries.parse(JSON.parse(reply[1]));
      const attempt = entries.at(-1)?.attempt ?? 1;
      const cancelled = reply[2] === '' ? null : CancelReason.parse(reply[2]);
      return { status: 'claimed', attempt, previous: entries.slice(0, -1), cancelled };
    },
    async end(rolloutId, attempt, end) {
      const cause = end.cause === null ? null : oneLine(end.cause);
      await scripts.end([of(rolloutId).journal], [rolloutId, attempt, JSON.stringify({ ...end, cause })]);
    },
    async read(rolloutId) {
      return parseEntries(await redis.hget(of(rolloutId).journal, rolloutId));
    },
    async readRetried(runId) {
      const run = keys.run(runId);
      const retried = new Map<string, string>();
      let cursor = '0';
      do {
        const [next, pairs] = await redis.hscan(run.journal, cursor, 'COUNT', SCAN_COUNT);
        for (const [at, text] of pairs.entries()) {
          if (at % 2 === 1 && (JSON.parse(text) as unknown[]).length > 1)
            retried.set(pairs[at - 1] ?? '', text);
        }
        cursor = next;
      } while (cursor !== '0');
      if (retried.size === 0) return new Map();
      const ids = [...retried.keys()];
      const committed = await redis.hmget(run.committed, ...ids);
      const open = ids.filter((_, index) => committed[index] === null);
      return new Map(open.map((id) => [id, parseEntries(retried.get(id))]));
    },
    async superseded(running) {
      const mine = new Map(running.map(({ rollout_id, attempt }) => [rollout_id, attempt]));
      const over = new Set<string>();
      for (const [runId, ids] of byRun([...mine.keys()])) {
        const run = keys.run(runId);
        const [journals, committed] = await Promise.all([
          redis.hmget(run.journal, ...ids),
          redis.hmget(run.committed, ...ids),
        ]);
        for (const [index, id] of ids.entries()) {
          const winner = committed[index];
          const newest = parseEntries(journals[index]).at(-1)?.attempt;
          const holder = winner ? parseCommitted(winner).attempt : newest;
          if (holder !== mine.get(id)) over.add(id);
        }
      }
      return over;
    },
  };
}

const parseEntries = (text: string | null | undefined): JournalEntry[] =>
  text ? Entries.parse(JSON.parse(text)) : [];

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').slice(0, CAUSE_LENGTH);
