/**
 * Siblings: calls whose answers one caller reads as one stream, for a prompt or for a batch. At the first failure NeMo RL stops reading
 * the stream, leaves its connections open, and sends all unanswered rows again. Therefore a failure of infrastructure is answered
 * last, and a row that is sent again takes over the rollout of its earlier call. Each gateway process knows only its own connections.
 */
import { sleep } from '@swefarm/shared';
import type { CallConnection } from './callconnection.ts';
import type { CallRollout } from './calltracker.ts';

export type SiblingCall = {
  rollout: CallRollout;
  /** Hash of the whole row, including the number in the group. */
  fingerprint: string;
  connection: CallConnection;
};

type Member = SiblingCall & {
  state: 'waiting' | 'failed' | 'decided' | 'taken_up';
  group: Set<Member>;
  /** Logical times at which the call joined, and at which a failure ended the stream (null: the stream has not ended). */
  joinedAt: number;
  streamEndedAt: number | null;
  /** Time (ms since the epoch) until which an equal row repeats this call. A later equal row belongs to another training step. */
  resendableUntil: number;
};

/** Interval at which a failed call checks whether its siblings are answered. */
const LOOK_MS = 250;
/** Time that a caller has to read the answers of the siblings before the failure is answered. */
const READ_MS = 1_000;

export type Membership = ReturnType<Siblings['join']>;

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

  join(stream: string, call: SiblingCall) {
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
      /** Marks the call as failed, and waits for the answers of its siblings, at most until `until` (ms since the epoch). */
      waitForSiblings: async (until: number, signal: AbortSignal): Promise<void> => {
        member.state = 'failed';
        this.#withdraw(member);
        await waitUntilAnswered(group, until, signal);
      },
      /**
       * Resolves immediately if the stream has not ended, otherwise when the caller no longer sends the row again. Rejects when `signal`
       * aborts, for example because the row was sent again.
       */
      whileResendable: async (signal: AbortSignal): Promise<void> => {
        if (member.streamEndedAt === null) return;
        await sleep(Math.max(0, member.resendableUntil - Date.now()), signal);
      },
      /** Ends the streams of the siblings, because the failure of this call is answered now. */
      endStreams: (): void => this.#endStreams(group, member.fingerprint, ++this.#events),
      /** Reserves the rollout for the answer to this call; false: another request has taken over the rollout. */
      decide: (): boolean => {
        if (member.state === 'taken_up') return false;
        member.state = 'decided';
        this.#withdraw(member);
        return true;
      },
      leave: (): void => {
        this.#withdraw(member);
        group.delete(member);
        if (group.size === 0 && this.#groups.get(stream) === group) this.#groups.delete(stream);
      },
    };
  }

  /** Ends the streams of waiting siblings, because a call of the stream was refused before the call joined. */
  endStreams(stream: string, fingerprint: string): void {
    this.#endStreams(this.#groups.get(stream) ?? new Set(), fingerprint, ++this.#events);
  }

  /** Returns the rollout of a call with an equal row whose stream ended at most `graceMs` ago, each rollout only once; null if none. */
  takeUp(fingerprint: string): CallRollout | null {
    const member = this.#resendable.get(fingerprint)?.find((one) => Date.now() < one.resendableUntil);
    if (!member) return null;
    this.#withdraw(member);
    member.state = 'taken_up';
    member.connection.supersede();
    // If the caller still reads the old stream, the 503 on the old connection ends it. The caller then sends the other rows again too.
    this.#endStreams(member.group, fingerprint, member.streamEndedAt ?? ++this.#events);
    return { ...member.rollout, attached: true };
  }

  /** Ends the streams of the members that already waited at the logical time `at`. */
  #endStreams(group: ReadonlySet<Member>, fingerprint: string, at: number): void {
    for (const member of group) {
      // Siblings without numbers have equal rows, and each of these calls needs its own answer.
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
