/**
 * The turn record of an attempt: appends each answer to the artifact of the attempt while the agent works, and reads what an earlier
 * attempt recorded. The result's artifact replaces the record. Without a record the next attempt begins anew, so errors are only logged.
 */
import {
  type AgentConfig,
  type BegunAnswer,
  decodeTurns,
  encodeTurns,
  errorMessage,
  FAILURES,
  type FailureClass,
  type Farm,
  isArtifactGone,
  type JournalEntry,
  type Log,
  lineOfBegun,
  type PolicyConfig,
  parseTurns,
  type RecordedTurn,
  type Replay,
  type RolloutJob,
  type RunRecord,
  type TurnRecord,
} from '@swefarm/shared';
import { abortOf } from './active.ts';
import { retryUntilAnswered, untilTakenOver } from './untilanswered.ts';

/** Longest record in bytes. Later turns are not recorded, so that the next attempt continues from this point. */
const MOST_BYTES = 64 * 1024 ** 2;
/** Interval in milliseconds at which the received part of an answer is recorded. A lost worker loses at most this much sampling. */
const PART_MS = 3_000;
/** Ends after which the state of the sandbox, or the time that is used up, may be the cause: the next attempt begins anew. */
const NOT_REPLAYED: ReadonlySet<FailureClass> = new Set([
  'patch_take',
  'policy_slow',
  'policy_tokens',
  'bug',
]);
/** Number of lost attempts after which the record is suspected to be their cause. */
const MOST_DEATHS = 2;

/** Returns whether the turns of the run's rollouts are recorded. */
export function recordsTurns(agent: AgentConfig, policy: PolicyConfig | null): boolean {
  if (agent.type !== 'mini' || policy === null || agent.resume_turns === 'off') return false;
  return agent.resume_turns === 'on' || policy.require_tokens || policy.token_mode === 'token-in';
}

type Claimed = {
  job: Pick<RolloutJob, 'rollout_id'>;
  attempt: number;
  claim: string;
  previous: JournalEntry[];
  run: Pick<RunRecord, 'agent' | 'policy'>;
};
type Services = { artifacts: Farm['artifacts']; log: Log; signal: AbortSignal };

export class AttemptTurns {
  readonly #claimed: Claimed;
  readonly #how: Services;
  readonly #isOn: boolean;
  /** All turns of the record, of which `#stored` are stored. */
  #turns: RecordedTurn[] = [];
  #stored = 0;
  #bytes = 0;
  #isClosed = false;
  /** Set when nothing more may be written: the rollout has its result, or belongs to another attempt. */
  #isOver = false;
  /** Returns the received part of the answer in progress; null: no answer is in progress. */
  #answering: (() => BegunAnswer | null) | null = null;
  #timer: NodeJS.Timeout | undefined;
  /** The part that is stored after the record's last turn. */
  #part: BegunAnswer | null = null;
  #writing: Promise<void> | null = null;
  #hasFailed = false;
  /** The record that this attempt continues. */
  #source: JournalEntry | null = null;
  /** How this attempt used an earlier record; null: there was none. */
  replay: Replay | null = null;
  /** The part of the answer after the turns to replay; null: no part. */
  begun: BegunAnswer | null = null;

  /** The constructor sends no request. */
  constructor(claimed: Claimed, how: Services) {
    this.#claimed = claimed;
    this.#how = how;
    this.#isOn = recordsTurns(claimed.run.agent, claimed.run.policy);
  }

  /** Returns the turns to replay; none if there is no usable record. @param branch text of the turns that a branch continues */
  async read(branch: string | null): Promise<readonly RecordedTurn[]> {
    if (this.replay) return [];
    const found = this.#isOn ? await this.#find() : null;
    const record = found?.record ?? (branch === null ? null : parseTurns(branch));
    if (record === null) return [];
    const { replay, turns, begun = null } = record;
    this.#source = found?.entry ?? null;
    if (turns.length === 0 && !replay && !begun) return [];
    this.begun = begun;
    this.#turns = [...turns];
    this.replay = { turns: turns.length, differed_at: replay?.differed_at ?? null };
    return turns;
  }

  /** Begins an empty record, because the replay differed at a turn. */
  async beginAnew(turn: number): Promise<void> {
    this.#turns = [];
    this.begun = null;
    this.#answering = null;
    this.replay = { turns: 0, differed_at: turn };
    this.#stored = 0;
    this.#bytes = 0;
    await this.#start();
  }

  /** Appends a turn in the background. */
  add(turn: RecordedTurn): void {
    if (!this.#isOn || this.#isClosed) return;
    this.#turns.push(turn);
    this.#answering = null;
    void this.#start();
  }

  /** Records the received part of an answer every {@link PART_MS} until its turn is added, and at the end of the attempt. */
  begin(read: () => BegunAnswer | null): void {
    if (!this.#isOn || this.#isClosed) return;
    this.#answering = read;
    this.#timer ??= setInterval(() => {
      if (this.#partToStore()) void this.#start(true);
    }, PART_MS).unref();
  }

  /** Ends the appends. Returns the facts for the journal. `over`: no other attempt needs the record, so nothing more is written. */
  async close(over = false): Promise<{ turns?: number; replay?: Replay }> {
    clearInterval(this.#timer);
    this.#isClosed = true;
    this.#isOver ||= over;
    await this.#writing;
    // If this attempt wrote no bytes, it only replayed turns. The replayed record still exists.
    const isBehind = this.#bytes > 0 && this.#stored < this.#turns.length;
    if (!over && (isBehind || this.#partToStore())) await this.#start(true);
    return {
      // A record without turns may have a part of the first answer.
      ...(this.#bytes > 0 ? { turns: this.#stored } : {}),
      ...(this.replay ? { replay: this.replay } : {}),
    };
  }

  /** Removes the records of this rollout when it has its result. `own`: also of this attempt, which has no artifact. */
  async remove(own: boolean): Promise<void> {
    if (!this.#isOn) return;
    const { attempt, claim, previous } = this.#claimed;
    for (const entry of previous) await this.#drop(entry);
    if (own && this.#bytes > 0) await this.#drop({ attempt, claim });
  }

  async #drop(entry: Pick<JournalEntry, 'attempt' | 'claim'>): Promise<void> {
    const { artifacts } = this.#how;
    const locator = artifacts.locate(this.#claimed.job.rollout_id, entry);
    await artifacts.remove(locator).catch((error: unknown) => {
      // Maintenance removes it.
      this.#how.log.debug({ record: locator, err: errorMessage(error) }, 'turn record not removed');
    });
  }

  /** Returns the part of the answer to store. An empty part is returned only to withdraw a stored part, whose tokens were damaged. */
  #partToStore(): BegunAnswer | null {
    const part = this.#answering?.() ?? null;
    return part && (part.ids.length > 0 || this.#part) ? part : null;
  }

  #start(withPart = false): Promise<void> {
    this.#writing ??= this.#write(withPart).finally(() => {
      this.#writing = null;
    });
    return this.#writing;
  }

  async #write(withPart: boolean): Promise<void> {
    const { artifacts } = this.#how;
    const { job, attempt, claim } = this.#claimed;
    let readPart = withPart;
    try {
      while ((!this.#isClosed || withPart) && !this.#isOver && this.#bytes < MOST_BYTES) {
        const part = readPart ? this.#partToStore() : null;
        const isFirst = this.#bytes === 0;
        const { length } = this.#turns;
        const fresh = this.#turns.slice(this.#stored);
        if (isFirst || fresh.length > 0) this.#part = null;
        const line = part && lineOfBegun(part, this.#part);
        if (fresh.length === 0 && !isFirst && !line) return;
        const bytes = await encodeTurns(fresh, isFirst ? { replay: this.replay } : undefined, line);
        const isStored = await artifacts.append(job.rollout_id, { attempt, claim }, bytes, this.#bytes);
        this.#stored = isStored ? length : 0;
        this.#bytes = isStored ? this.#bytes + bytes.length : 0;
        if (!isStored) continue;
        this.#part = part ?? this.#part;
        readPart = false;
        if (isFirst) await this.#dropSource();
      }
    } catch (error) {
      if (!this.#hasFailed)
        this.#how.log.warn({ err: errorMessage(error) }, 'turn not recorded: tried again at the next turn');
      this.#hasFailed = true;
    }
  }

  /** Removes the record that this attempt's own one continues. */
  async #dropSource(): Promise<void> {
    const source = this.#source;
    this.#source = null;
    if (source) await this.#drop(source);
  }

  /** Returns the newest readable record; null if there is none, or if the next attempt must not use it. */
  async #find(): Promise<{ entry: JournalEntry; record: TurnRecord } | null> {
    const { job, previous } = this.#claimed;
    const { log, signal, artifacts } = this.#how;
    let deaths = 0;
    for (const entry of previous.toReversed()) {
      const failed = entry.end?.class;
      if (failed !== undefined && NOT_REPLAYED.has(failed as FailureClass)) return null;
      if (isDeath(entry)) deaths++;
      const locator = artifacts.locate(job.rollout_id, entry);
      const read = () => artifacts.get(locator);
      try {
        const blob = await retryUntilAnswered('turn record', read, untilTakenOver({ log, signal }));
        if (deaths >= MOST_DEATHS) {
          log.warn({ deaths }, 'recorded turns not replayed: two attempts with them were lost');
          return null;
        }
        return { entry, record: await decodeTurns(blob) };
      } catch (error) {
        if (error === abortOf(signal)) throw error;
        if (!isArtifactGone(error)) log.warn({ err: errorMessage(error) }, 'turn record unreadable');
      }
    }
    return null;
  }
}

/** Returns whether worker or sandbox were lost in an attempt. */
function isDeath({ end }: JournalEntry): boolean {
  if (end === null) return true;
  if (end.class === 'drained' || end.class === 'done') return false;
  return FAILURES[end.class].stage === 'sandbox' || FAILURES[end.class].stage === 'worker';
}
