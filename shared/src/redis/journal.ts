/** The journal of attempts. A claim and the end of an attempt write to it; an attempt without an end crashed or still runs. */
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { FAILURE_CLASSES, FailureStage } from '../failures/failure.ts';
import { type AttemptName, byRun, newId, parseRolloutId } from '../records/ids.ts';
import { type CancelReason, type Outcome, outcomeOf, reasonOf } from '../records/result.ts';
import type { Keys } from './keys.ts';
import { loadScript } from './script.ts';

/** `done`: this or another attempt committed a result. `drained`: the worker returned the rollout to the queue, at no cost of attempts. */
export const AttemptClass = z.enum(['done', 'drained', ...FAILURE_CLASSES]);
export type AttemptClass = z.infer<typeof AttemptClass>;

export const AttemptEnd = z.object({
  stage: FailureStage.nullable().catch(null),
  /** A class that only newer versions know is read as `drained`, which does not count. */
  class: AttemptClass.catch('drained'),
  /** Cause of the end: one line of at most 200 characters. */
  cause: z.string().nullable(),
  /** Locator of resumable work (a patch whose evaluation failed); absent: none. */
  kept: z.string().nullable().optional(),
});
export type AttemptEnd = z.infer<typeof AttemptEnd>;

export const JournalEntry = z.object({
  attempt: z.number().int().positive(),
  /** Nonce of the claim, which identifies the attempt. */
  claim: z.string(),
  worker: z.string(),
  node: z.string(),
  /** Time of the claim in milliseconds since the epoch, by the clock of Redis. */
  claimed_at: z.number(),
  ended_at: z.number().nullable(),
  end: AttemptEnd.nullable(),
});
export type JournalEntry = z.infer<typeof JournalEntry>;

export type Claim =
  | {
      status: 'claimed';
      attempt: number;
      claim: string;
      previous: JournalEntry[];
      /** Why the rollout is cancelled; null: the rollout is not cancelled. */
      cancelled: CancelReason | null;
    }
  /** An attempt of another worker has no end, so no attempt was opened. */
  | { status: 'in_work'; worker: string; claim: string }
  | { status: 'committed'; attempt: number; outcome: Outcome }
  /** The run is paused, or (`onlyResumable`) the rollout has no resumable work. No attempt was opened. */
  | { status: 'paused' }
  | { status: 'gone' };

export type RunningAttempt = AttemptName & { rollout_id: string };

export type Journal = {
  /**
   * Opens the next attempt, unless the rollout is committed or the run is gone. `heed`: also refuses while an attempt of another worker has
   * no end, unless its claim is `over`. `onlyResumable`: also refuses a rollout without resumable work that is not cancelled.
   */
  claim(
    rolloutId: string,
    by: { worker: string; node: string },
    heed?: { over: string | null; onlyResumable?: boolean },
  ): Promise<Claim>;
  /** Writes the end of an attempt. A second end has no effect, nor has the end in an expired run. */
  end(rolloutId: string, claim: string, end: AttemptEnd): Promise<void>;
  read(rolloutId: string): Promise<JournalEntry[]>;
  /** Returns the journals of uncommitted rollouts with several attempts. */
  readRetried(runId: string): Promise<Map<string, JournalEntry[]>>;
  /** Returns the number of rollouts whose last attempt has no end. */
  countInWork(runId: string): Promise<number>;
  /**
   * Confirms that these attempts run, and restores claims that Redis lost. Returns the rollouts whose attempt must stop: another attempt
   * claimed or committed the rollout, or the run is gone.
   */
  renewAttempts(
    by: { worker: string; node: string },
    running: readonly RunningAttempt[],
  ): Promise<Set<string>>;
};

const Entries = z.array(JournalEntry);
const CAUSE_LENGTH = 200;
/** Number of journals in one read, to limit the duration of one command. */
const SCAN_COUNT = 500;

const journalScripts = (redis: Redis) => ({
  claim: loadScript(redis, 'claim'),
  end: loadScript(redis, 'end'),
  renewAttempts: loadScript(redis, 'renew_attempts'),
});

type Store = { redis: Redis; keys: Keys; scripts: ReturnType<typeof journalScripts> };

export function createJournal(redis: Redis, keys: Keys): Journal {
  const store: Store = { redis, keys, scripts: journalScripts(redis) };
  const journalKey = (rolloutId: string): string => keys.run(parseRolloutId(rolloutId).runId).journal;
  return {
    claim: (rolloutId, by, heed) => claimRollout(store, rolloutId, by, heed),
    async end(rolloutId, claim, end) {
      const cause = end.cause === null ? null : oneLine(end.cause);
      await store.scripts.end([journalKey(rolloutId)], [rolloutId, claim, JSON.stringify({ ...end, cause })]);
    },
    read: async (rolloutId) => parseEntries(await redis.hget(journalKey(rolloutId), rolloutId)),
    async readRetried(runId) {
      const retried = await uncommittedJournals(store, runId, (journal) => journal.length > 1);
      return new Map([...retried].map(([id, text]) => [id, parseEntries(text)]));
    },
    async countInWork(runId) {
      return (await uncommittedJournals(store, runId, (journal) => journal.at(-1)?.ended_at === null)).size;
    },
    renewAttempts: (by, running) => renewAttempts(store, by, running),
  };
}

async function claimRollout(
  { keys, scripts }: Store,
  rolloutId: string,
  { worker, node }: { worker: string; node: string },
  heed: Parameters<Journal['claim']>[2],
): Promise<Claim> {
  const { runId, instanceId } = parseRolloutId(rolloutId);
  const run = keys.run(runId);
  const nonce = newId();
  const state = [run.record, run.committed, run.journal, run.cancelled, run.paused];
  const reply = (await scripts.claim(
    [...state, run.instances, run.patches, run.results, run.groups, run.counts, run.appended],
    [
      ...[rolloutId, worker, node, nonce, instanceId],
      ...[heed ? 1 : 0, heed?.over ?? '', heed?.onlyResumable ? 1 : 0],
    ],
  )) as ['claimed' | 'committed' | 'paused' | 'in_work' | 'gone', string, string];
  if (reply[0] === 'gone' || reply[0] === 'paused') return { status: reply[0] };
  if (reply[0] === 'in_work') return { status: 'in_work', worker: reply[1], claim: reply[2] };
  if (reply[0] === 'committed') {
    return { status: 'committed', attempt: Number(reply[1]), outcome: outcomeOf(reply[2]) };
  }
  const entries = Entries.parse(JSON.parse(reply[1]));
  const attempt = entries.at(-1)?.attempt ?? 1;
  const cancelled = reply[2] === '' ? null : reasonOf(reply[2]);
  return { status: 'claimed', attempt, claim: nonce, previous: entries.slice(0, -1), cancelled };
}

/** Returns the journals, as text, of uncommitted rollouts for which `wanted` returns true. */
async function uncommittedJournals(
  { redis, keys }: Store,
  runId: string,
  wanted: (journal: { ended_at: number | null }[]) => boolean,
): Promise<Map<string, string>> {
  const run = keys.run(runId);
  const found = new Map<string, string>();
  let cursor = '0';
  do {
    const [next, pairs] = await redis.hscan(run.journal, cursor, 'COUNT', SCAN_COUNT);
    for (const [at, text] of pairs.entries()) {
      if (at % 2 === 1 && wanted(JSON.parse(text))) found.set(pairs[at - 1] ?? '', text);
    }
    cursor = next;
  } while (cursor !== '0');
  if (found.size === 0) return found;
  const committed = await redis.hmget(run.committed, ...found.keys());
  return new Map([...found].filter((_, index) => committed[index] === null));
}

async function renewAttempts(
  { keys, scripts }: Store,
  { worker, node }: { worker: string; node: string },
  running: readonly RunningAttempt[],
): Promise<Set<string>> {
  const attempts = new Map(running.map((one) => [one.rollout_id, one]));
  const over = new Set<string>();
  for (const [runId, ids] of byRun([...attempts.keys()])) {
    const run = keys.run(runId);
    for (let at = 0; at < ids.length; at += SCAN_COUNT) {
      const names = ids
        .slice(at, at + SCAN_COUNT)
        .flatMap((id) => [id, attempts.get(id)?.attempt ?? 0, attempts.get(id)?.claim ?? '']);
      const lost = await scripts.renewAttempts(
        [run.record, run.committed, run.journal],
        [worker, node, ...names],
      );
      for (const id of lost as string[]) over.add(id);
    }
  }
  return over;
}

const parseEntries = (text: string | null | undefined): JournalEntry[] =>
  text ? Entries.parse(JSON.parse(text)) : [];

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').slice(0, CAUSE_LENGTH);
