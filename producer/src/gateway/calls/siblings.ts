/**
 * Rollouts of one prompt that one caller waits for. NeMo RL reads their answers as one stream, which ends at its first failure:
 * every row that is not answered by then it sends again, and never reads the old connections, which stay open. So a failure is
 * told last, and rows that are sent again take up the rollouts that run. Of this process: a stream knows one gateway.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Found } from './calltracker.ts';

export type Member = {
  found: Found;
  /** Of the whole row; siblings differ in it by their index. */
  fingerprint: string;
  /** Its connection is told that another one has its rollout. */
  supersede(): void;
};

export type Seat = {
  /** It ended without a verdict: resolves when no sibling is waited for any more, at most at `until` (ms since the epoch). */
  last(until: number, signal: AbortSignal): Promise<void>;
  /** A failure is told now, by which the stream of its siblings ends: their rows may be sent again. */
  release(): void;
  /** Its answer is decided: nobody else can have its rollout. False: somebody has. */
  decide(): boolean;
  leave(): void;
};

export type Cohorts = {
  join(prompt: string, member: Member): Seat;
  /** A row of this prompt is refused, which has no seat: the streams of those that wait end by it. */
  release(prompt: string, fingerprint: string): void;
  /** The rollout of such a row whose stream has ended a short while ago, once; null: there is none. */
  takeUp(fingerprint: string): Found | null;
};

type Standing = 'waiting' | 'failed' | 'decided' | 'taken';
type Entry = Member & {
  standing: Standing;
  cohort: Set<Entry>;
  /** When it joined, and when the failure was told that ended its stream (null: none was), by a count of such events. */
  joined: number;
  released: number | null;
  /** Until then an equal row is the same one sent again, later one of another step; ms since the epoch. */
  takenUntil: number;
};

/** How often a held failure looks for its siblings. */
const LOOK_MS = 250;
/** For a caller to read the answers that were sent before. */
const READ_MS = 1_000;

/** `graceMs`: how long a row may take to be sent again. */
export function createCohorts(graceMs: number): Cohorts {
  const cohorts = new Map<string, Set<Entry>>();
  const released = new Map<string, Entry[]>();
  let events = 0;
  /** Whoever waited when a row was told of a failure may be of the same stream. */
  const releaseBeside = (cohort: ReadonlySet<Entry>, fingerprint: string, at: number): void => {
    for (const one of cohort) {
      // Rows that are equal in everything are siblings whose caller numbers them by no field: each is waited for.
      const same = one.fingerprint === fingerprint;
      if (same || one.standing !== 'waiting' || one.released !== null || one.joined > at) continue;
      one.released = at;
      one.takenUntil = Date.now() + graceMs;
      released.set(one.fingerprint, [...(released.get(one.fingerprint) ?? []), one]);
    }
  };
  const unrelease = (entry: Entry): void => {
    const left = (released.get(entry.fingerprint) ?? []).filter((one) => one !== entry);
    if (left.length > 0) released.set(entry.fingerprint, left);
    else released.delete(entry.fingerprint);
  };

  return {
    join(prompt, member) {
      const cohort = cohorts.get(prompt) ?? new Set();
      const seat = { standing: 'waiting' as const, cohort, joined: ++events, released: null, takenUntil: 0 };
      const entry: Entry = { ...member, ...seat };
      cohorts.set(prompt, cohort.add(entry));
      return {
        async last(until, signal) {
          entry.standing = 'failed';
          unrelease(entry);
          const unanswered = (): boolean =>
            [...cohort].some(({ standing }) => standing === 'waiting' || standing === 'decided');
          let waited = false;
          while (unanswered() && Date.now() < until) {
            waited = true;
            await sleep(LOOK_MS, undefined, { signal });
          }
          if (waited) await sleep(READ_MS, undefined, { signal });
        },
        release: () => releaseBeside(cohort, entry.fingerprint, ++events),
        decide() {
          if (entry.standing === 'taken') return false;
          entry.standing = 'decided';
          unrelease(entry);
          return true;
        },
        leave() {
          unrelease(entry);
          cohort.delete(entry);
          if (cohort.size === 0 && cohorts.get(prompt) === cohort) cohorts.delete(prompt);
        },
      };
    },
    release: (prompt, fingerprint) => releaseBeside(cohorts.get(prompt) ?? new Set(), fingerprint, ++events),
    takeUp(fingerprint) {
      const entry = released.get(fingerprint)?.find(({ takenUntil }) => Date.now() < takenUntil);
      if (!entry) return null;
      unrelease(entry);
      entry.standing = 'taken';
      entry.supersede();
      // It is told 503 now: were its stream still read, that ends it.
      releaseBeside(entry.cohort, fingerprint, entry.released ?? ++events);
      return { ...entry.found, attached: true };
    },
  };
}
