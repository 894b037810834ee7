/** The journal of attempts. A claim and the end of an attempt write to it; an attempt without an end crashed or still runs. */
import { z } from 'zod';
import { FAILURE_CLASSES, FailureStage } from '../failures/failure.ts';
import { type AttemptName, newId, parseRolloutId } from '../records/ids.ts';
import { type CancelReason, type Outcome, outcomeOf, Replay, reasonOf } from '../records/result.ts';
import { pairsIn } from './pairs.ts';
import { Part } from './part.ts';

export const AttemptEnd = z.object({
  stage: FailureStage.nullable().catch(null),
  /**
   * `done`: this or another attempt committed a result. `drained`: the worker returned the rollout to the queue, at no cost of attempts. A
   * class that only newer versions know is read as `drained`.
   */
  class: z.enum(['done', 'drained', ...FAILURE_CLASSES]).catch('drained'),
  /** Cause of the end: one line of at most 200 characters. */
  cause: z.string().nullable(),
  /** Locator of resumable work (a patch whose evaluation failed); absent: none. */
  kept: z.string().nullable().optional(),
  /** Number of turns in the attempt's turn record, which the next attempt can replay; absent: no record. */
  turns: z.number().int().optional().catch(undefined),
  replay: Replay.optional().catch(undefined),
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

type Holder = { worker: string; node: string };

const Entries = z.array(JournalEntry);
const CAUSE_LENGTH = 200;
/** Number of journals in one read, to limit the duration of one command. */
const BATCH = 500;

export class Journal extends Part {
  readonly #claim = this.script('claim');
  readonly #end = this.script('end');
  readonly #renewAttempts = this.script('renew_attempts');

  /**
   * Opens the next attempt, unless the rollout is committed or its run is gone or paused (a cancelled rollout ignores the pause). `heed`:
   * also refuses while an attempt of another worker has no end, unless its claim is `over`. `onlyResumable`: also refuses a rollout without
   * resumable work that is not cancelled.
   */
  async claim(
    rolloutId: string,
    { worker, node }: Holder,
    heed?: { over: string | null; onlyResumable?: boolean },
  ): Promise<Claim> {
    const { runId, instanceId } = parseRolloutId(rolloutId);
    const run = this.keys.run(runId);
    const nonce = newId();
    const state = [run.record, run.committed, run.journal, run.cancelled, run.paused];
    const reply = (await this.#claim(
      [
        ...state,
        run.instances,
        run.patches,
        run.results,
        run.groups,
        run.counts,
        run.appended,
        run.ends,
        run.draws,
      ],
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

  /** Writes the end of an attempt. A second end has no effect, nor has the end in an expired run. */
  async end(rolloutId: string, claim: string, end: AttemptEnd): Promise<void> {
    const cause = end.cause === null ? null : oneLine(end.cause);
    await this.#end([this.#keyOf(rolloutId)], [rolloutId, claim, JSON.stringify({ ...end, cause })]);
  }

  async read(rolloutId: string): Promise<JournalEntry[]> {
    return parseEntries(await this.redis.hget(this.#keyOf(rolloutId), rolloutId));
  }

  /** Returns the journals of uncommitted rollouts with several attempts. */
  async readRetried(runId: string): Promise<Map<string, JournalEntry[]>> {
    const retried = await this.#uncommitted(runId, (journal) => journal.length > 1);
    return new Map([...retried].map(([id, text]) => [id, parseEntries(text)]));
  }

  /** Returns the number of uncommitted rollouts whose last attempt has no end. */
  async countInWork(runId: string): Promise<number> {
    return (await this.#uncommitted(runId, (journal) => journal.at(-1)?.ended_at === null)).size;
  }

  /**
   * Confirms that these attempts run, and restores claims that Redis lost. Returns the rollouts whose attempt must stop: another attempt
   * claimed or committed the rollout, or the run is gone.
   */
  async renewAttempts({ worker, node }: Holder, running: readonly RunningAttempt[]): Promise<Set<string>> {
    const over = new Set<string>();
    for (const [runId, attempts] of Map.groupBy(running, (one) => parseRolloutId(one.rollout_id).runId)) {
      const run = this.keys.run(runId);
      for (let at = 0; at < attempts.length; at += BATCH) {
        const names = attempts
          .slice(at, at + BATCH)
          .flatMap(({ rollout_id, attempt, claim }) => [rollout_id, attempt, claim]);
        const lost = await this.#renewAttempts(
          [run.record, run.committed, run.journal],
          [worker, node, ...names],
        );
        for (const id of lost as string[]) over.add(id);
      }
    }
    return over;
  }

  #keyOf(rolloutId: string): string {
    return this.keys.run(parseRolloutId(rolloutId).runId).journal;
  }

  /** Returns the journals, as text, of uncommitted rollouts for which `wanted` returns true. */
  async #uncommitted(
    runId: string,
    wanted: (journal: { ended_at: number | null }[]) => boolean,
  ): Promise<Map<string, string>> {
    const run = this.keys.run(runId);
    const found = new Map<string, string>();
    for await (const journals of pairsIn(this.redis.hscanStream(run.journal, { count: BATCH })))
      for (const [id, text] of journals) if (wanted(JSON.parse(text))) found.set(id, text);
    if (found.size === 0) return found;
    const committed = await this.redis.hmget(run.committed, ...found.keys());
    return new Map([...found].filter((_, index) => committed[index] === null));
  }
}

const parseEntries = (text: string | null | undefined): JournalEntry[] =>
  text ? Entries.parse(JSON.parse(text)) : [];

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').slice(0, CAUSE_LENGTH);
