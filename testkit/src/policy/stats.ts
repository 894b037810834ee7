/** Statistics of the server, in total and per rollout, for assertions: turns, aborts, most requests in flight. */

import type { EngineStats } from './engine.ts';

/** An answer that was sent. */
export type AnswerSeen = { prompt_tokens: number; completion_tokens: number; sha256: string | null };

type Aborted = { turn: number; after_ms: number; at: string };

export type RolloutSeen = {
  requests: number;
  answered: number;
  /** Highest turn number that was requested. */
  turns: number;
  conversation: number | null;
  variant: number | null;
  /** Requests whose connection the client closed before the answer was sent. */
  aborted: Aborted[];
  max_in_flight: number;
  faults: number;
  /** The SHA-256 of each picture of its latest request; absent: none. */
  pictures?: string[];
  /** Absent: not recorded. */
  answers?: AnswerSeen[];
};

export type PolicyStats = {
  requests: number;
  answered: number;
  refused_requests: number;
  aborted: number;
  in_flight: number;
  max_in_flight: number;
  prompt_tokens: number;
  completion_tokens: number;
  /** Tokens sent in streams so far, including answers whose client disconnected before the end. */
  streamed_tokens: number;
  /** Number of affected requests by kind of fault. */
  faults: Record<string, number>;
  rollouts: Record<string, RolloutSeen>;
  /** Absent: the server simulates no engine. */
  engine?: EngineStats;
};

/** One request under way. */
export type Visit = {
  chosen(conversation: number, variant: number): void;
  struck(): void;
  shown(pictures: string[]): void;
  /** `sha256`: of all ids; undefined: answers are not recorded one by one. */
  answered(promptTokens: number, completionTokens: number, sha256?: string | null): void;
  /** Counts an event with this many tokens. */
  streamed(tokens: number): void;
  /** HTTP 4xx caused by the request itself. */
  refused(): void;
  /** Always called last. */
  left(byClient: boolean): void;
};

/** Number of rollouts in the statistics; the oldest are dropped first. */
const MOST_ROLLOUTS = 100_000;

export function openStats(faults: () => Record<string, number>) {
  const total = { requests: 0, answered: 0, refused_requests: 0, aborted: 0, in_flight: 0, max_in_flight: 0 };
  const tokens = { prompt_tokens: 0, completion_tokens: 0, streamed_tokens: 0 };
  const rollouts = new Map<string, RolloutSeen & { in_flight: number }>();

  const seenOf = (rollout: string) => {
    const known = rollouts.get(rollout);
    if (known) return known;
    const seen = { ...EMPTY, aborted: [], in_flight: 0 };
    rollouts.set(rollout, seen);
    if (rollouts.size > MOST_ROLLOUTS) {
      const oldest = rollouts.keys().next().value;
      if (oldest !== undefined) rollouts.delete(oldest);
    }
    return seen;
  };

  return {
    enter(rollout: string, turn: number): Visit {
      const seen = seenOf(rollout);
      const since = performance.now();
      total.requests++;
      seen.requests++;
      seen.turns = Math.max(seen.turns, turn + 1);
      total.max_in_flight = Math.max(total.max_in_flight, ++total.in_flight);
      seen.max_in_flight = Math.max(seen.max_in_flight, ++seen.in_flight);
      return {
        chosen(conversation, variant) {
          seen.conversation = conversation;
          seen.variant = variant;
        },
        struck: () => void seen.faults++,
        shown(pictures) {
          if (pictures.length > 0) seen.pictures = pictures;
        },
        answered(promptTokens, completionTokens, sha256) {
          if (sha256 !== undefined) {
            seen.answers ??= [];
            seen.answers.push({ prompt_tokens: promptTokens, completion_tokens: completionTokens, sha256 });
          }
          total.answered++;
          seen.answered++;
          tokens.prompt_tokens += promptTokens;
          tokens.completion_tokens += completionTokens;
        },
        streamed(count) {
          tokens.streamed_tokens += count;
        },
        refused: () => void total.refused_requests++,
        left(byClient) {
          total.in_flight--;
          seen.in_flight--;
          if (!byClient) return;
          total.aborted++;
          const after = Math.round(performance.now() - since);
          seen.aborted.push({ turn, after_ms: after, at: new Date().toISOString() });
        },
      };
    },
    read(): PolicyStats {
      const shown: [string, RolloutSeen][] = [];
      for (const [rollout, { in_flight: _, ...seen }] of rollouts)
        shown.push([rollout, structuredClone(seen)]);
      return { ...total, ...tokens, faults: faults(), rollouts: Object.fromEntries(shown) };
    },
    inFlight: () => total.in_flight,
  };
}
export type Stats = ReturnType<typeof openStats>;

const EMPTY: Omit<RolloutSeen, 'aborted'> = {
  requests: 0,
  answered: 0,
  turns: 0,
  conversation: null,
  variant: null,
  max_in_flight: 0,
  faults: 0,
};
