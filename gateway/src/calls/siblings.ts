/**
 * Siblings: calls whose answers one caller reads as one stream, of a prompt or of a batch. At the first failure NeMo RL stops reading
 * the stream, leaves its connections open, and sends all unanswered rows again. Therefore a failure of infrastructure is answered
 * last, and a row that is sent again takes over the rollout of its earlier call. One process knows its own connections only.
 */
import { sleep } from '@swefarm/shared';
import type { CallRollout } from './calltracker.ts';

export type SiblingCall = {
  rollout: CallRollout;
  /** Hash of the whole row, with its number in the group. */
  fingerprint: string;
  /** Answers the connection that another request has taken over the rollout. */
  supersede(): void;
};

type Member = SiblingCall & {
  state: 'waiting' | 'failed' | 'decided' | 'taken_up';
  group: Set<Member>;
  /** Logical times: when the call joined, and when a failure ended its stream (null: not yet). */
  joinedAt: number;
  streamEndedAt: number | null;
  /** Until this time (ms since the epoch) an equal row is a repetition, later one of another step. */
  resendableUntil: number;
};

/** Interval at which a failure checks for answered siblings. */
const LOOK_MS = 250;
/** Time for a caller to read the earlier answers. */
const READ_MS = 1_000;

export class Siblings {
  /** Members by stream. */
  readonly #groups = new Map<string, Set<Member>>();
  /** Members whose streams have ended, by the fingerprint of their rows. */
  readonly #resendable = new Map<string, Member[]>();
  readonly #graceMs: number;
  #events = 0;

  /** @param graceMs time in which a caller sends a row again */
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

  /** Ends the streams of waiting siblings, because a row of this stream was refused before it joined. */
  endStreams(stream: string, fingerprint: string): void {
    this.#endStreams(this.#groups.get(stream) ?? new Set(), fingerprint, ++this.#events);
  }

  /** Returns the rollout of an equal row whose stream ended within the grace, once; null: none. */
  takeUp(fingerprint: string): CallRollout | null {
    const member = this.#resendable.get(fingerprint)?.find((one) => Date.now() < one.resendableUntil);
    if (!member) return null;
    this.#withdraw(member);
    member.state = 'taken_up';
    member.supersede();
    // If the caller still reads the old stream, the 503 on the old connection ends it. The caller then sends the other rows again too.
    this.#endStreams(member.group, fingerprint, member.streamEndedAt ?? ++this.#events);
    return { ...member.rollout, attached: true };
  }

  /** Ends the streams of the members that waited at this logical time. */
  #endStreams(group: ReadonlySet<Member>, fingerprint: string, at: number): void {
    for (const member of group) {
      // Equal rows are siblings without numbers: each of them needs its own answer.
      if (member.fingerprint === fingerprint) continue;
      if (member.state !== 'waiting' || member.streamEndedAt !== null || member.joinedAt > at) continue;
      member.streamEndedAt = at;
      member.resendableUntil = Date.now() + this.#graceMs;
      const equal = this.#resendable.get(member.fingerprint) ?? [];
      this.#resendable.set(member.fingerprint, [...equal, member]);
    }
  }

  /** Excludes the member from {@link takeUp}. */
  #withdraw(member: Member): void {
    const left = (this.#resendable.get(member.fingerprint) ?? []).filter((one) => one !== member);
    if (left.length > 0) this.#resendable.set(member.fingerprint, left);
    else this.#resendable.delete(member.fingerprint);
  }
}

export type Membership = {
  /** Marks the call as failed, and waits until its siblings are answered or `until` (ms since the epoch). */
  waitForSiblings(until: number, signal: AbortSignal): Promise<void>;
  /**
   * Resolves immediately while the stream is read, else at the end of the grace. Rejects when the row is sent again, which aborts
   * `signal`.
   */
  whileResendable(signal: AbortSignal): Promise<void>;
  /** Ends the streams of the siblings, because this call's failure is answered now. */
  endStreams(): void;
  /** Reserves the rollout for this call's answer; false: another request has taken it over. */
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
