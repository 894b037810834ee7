/**
 * Siblings: calls whose answers one caller reads as one stream, of a prompt or of a batch. NeMo RL ends such a stream at the first
 * failure: it sends every row that is not answered by then again, and never reads the old connections, which stay open. So a failure
 * of infrastructure is answered last, and rows that are sent again take up the rollouts that run, and those that were judged since
 * the stream ended. One process knows its own connections only.
 */
import { sleep } from '@swefarm/shared';
import type { CallRollout } from './calltracker.ts';

/** A call that has siblings. */
export type SiblingCall = {
  rollout: CallRollout;
  /** Of the whole row; siblings differ in it by their index. */
  fingerprint: string;
  /** Its connection is answered that another one has its rollout. */
  supersede(): void;
};

type Member = SiblingCall & {
  state: 'waiting' | 'failed' | 'decided' | 'taken_up';
  group: Set<Member>;
  /** When it joined, and when the failure was answered that ended its stream (null: none was), by a count of such events. */
  joinedAt: number;
  streamEndedAt: number | null;
  /** Until then an equal row is the same one sent again, later one of another step; ms since the epoch. */
  resendableUntil: number;
};

/** How often a failure looks whether its siblings are answered. */
const LOOK_MS = 250;
/** For a caller to read the answers that were sent before. */
const READ_MS = 1_000;

export class Siblings {
  /** Members by stream. */
  readonly #groups = new Map<string, Set<Member>>();
  /** Members whose streams have ended, by the fingerprint of their rows. */
  readonly #resendable = new Map<string, Member[]>();
  readonly #graceMs: number;
  #events = 0;

  /** `graceMs`: how long a caller may take to send a row again. */
  constructor(graceMs: number) {
    this.#graceMs = graceMs;
  }

  join(stream: string, call: SiblingCall): Membership {
    const group = this.#groups.get(stream) ?? new Set();
    const member: Member = {
      ...call,
      state: 'waiting',
      group,
      joinedAt: ++this.#events,
      streamEndedAt: null,
      resendableUntil: 0,
    };
    this.#groups.set(stream, group.add(member));
    return {
      waitForSiblings: async (until, signal) => {
        member.state = 'failed';
        this.#withdraw(member);
        await waitUntilAnswered(group, until, signal);
      },
      whileResendable: async (signal) => {
        if (member.streamEndedAt === null) return;
        await sleep(Math.max(0, member.resendableUntil - Date.now()), signal);
      },
      endStreams: () => this.#endStreams(group, member.fingerprint, ++this.#events),
      decide: () => {
        if (member.state === 'taken_up') return false;
        member.state = 'decided';
        this.#withdraw(member);
        return true;
      },
      leave: () => {
        this.#withdraw(member);
        group.delete(member);
        if (group.size === 0 && this.#groups.get(stream) === group) this.#groups.delete(stream);
      },
    };
  }

  /** A row of this stream is refused before it joins: the streams of its siblings that wait end by it. */
  endStreams(stream: string, fingerprint: string): void {
    this.#endStreams(this.#groups.get(stream) ?? new Set(), fingerprint, ++this.#events);
  }

  /** The rollout of an equal row whose stream ended a short while ago, given once; null: there is none. */
  takeUp(fingerprint: string): CallRollout | null {
    const member = this.#resendable.get(fingerprint)?.find((one) => Date.now() < one.resendableUntil);
    if (!member) return null;
    this.#withdraw(member);
    member.state = 'taken_up';
    member.supersede();
    // It is answered 503 now: if its stream is still read, that ends it.
    this.#endStreams(member.group, fingerprint, member.streamEndedAt ?? ++this.#events);
    return { ...member.rollout, attached: true };
  }

  /** Whoever waited when a failure was answered may be of the same stream. */
  #endStreams(group: ReadonlySet<Member>, fingerprint: string, at: number): void {
    for (const member of group) {
      // Rows that are equal in everything are siblings whose caller numbers them by no field: each is waited for.
      if (member.fingerprint === fingerprint) continue;
      if (member.state !== 'waiting' || member.streamEndedAt !== null || member.joinedAt > at) continue;
      member.streamEndedAt = at;
      member.resendableUntil = Date.now() + this.#graceMs;
      const equal = this.#resendable.get(member.fingerprint) ?? [];
      this.#resendable.set(member.fingerprint, [...equal, member]);
    }
  }

  /** Nobody can take its rollout up any more. */
  #withdraw(member: Member): void {
    const left = (this.#resendable.get(member.fingerprint) ?? []).filter((one) => one !== member);
    if (left.length > 0) this.#resendable.set(member.fingerprint, left);
    else this.#resendable.delete(member.fingerprint);
  }
}

export type Membership = {
  /** Its rollout has no verdict: resolves when no sibling waits for an answer, at most at `until` (ms since the epoch). */
  waitForSiblings(until: number, signal: AbortSignal): Promise<void>;
  /**
   * Its rollout is judged: resolves at once while its stream is read, else when the row is no longer expected to be sent again.
   * Rejects when the row was sent again, which aborts `signal`.
   */
  whileResendable(signal: AbortSignal): Promise<void>;
  /** Its failure is answered now, by which the stream of its siblings ends: their rows may be sent again. */
  endStreams(): void;
  /** Its answer is decided: nobody else can take up its rollout. False: somebody has. */
  decide(): boolean;
  leave(): void;
};

async function waitUntilAnswered(
  group: ReadonlySet<Member>,
  until: number,
  signal: AbortSignal,
): Promise<void> {
  let waited = false;
  while ([...group].some(({ state }) => state === 'waiting' || state === 'decided') && Date.now() < until) {
    waited = true;
    await sleep(LOOK_MS, signal);
  }
  if (waited) await sleep(READ_MS, signal);
}
