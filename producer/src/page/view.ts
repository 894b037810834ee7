/** From results and artifacts to what the page shows of them. */
import {
  type ArtifactContent,
  describeUnreadable,
  type Result,
  type UnreadableResult,
} from '@swefarm/shared';
import type { LineSummary, OutputLine } from '../output/line.ts';
import type { PageDetail, PageRollout, PageTokens } from './data.ts';

const REASON_LENGTH = 160;

export function pageRollout(
  of: (Result | LineSummary) & Partial<Pick<Result, 'facts'>>,
  instance: number,
): PageRollout {
  return {
    instance,
    index: of.rollout_index,
    outcome: of.outcome,
    resolved: of.resolved,
    reward: of.reward,
    exit: of.exit_status,
    failure: of.failure?.class ?? null,
    reason: of.failure?.message.slice(0, REASON_LENGTH) ?? null,
    forged: of.facts?.trust === 'forged',
    turns: of.turns,
    tokens: of.tokens.prompt + of.tokens.completion,
    seconds: of.seconds.total,
    attempt: of.attempt,
    node: of.node,
    version: of.policy_version,
    finished_at: of.finished_at,
  };
}

/** A result that cannot be read stands among the failed ones: there is no reward of it, and it says why. */
export const pageUnreadable = (entry: UnreadableResult, instance: number, index: number): PageRollout => ({
  ...{ instance, index, outcome: 'failed', resolved: null, reward: null, exit: null },
  ...{ failure: 'result_unreadable', reason: describeUnreadable(entry), forged: false, turns: 0, tokens: 0 },
  ...{ seconds: 0, attempt: 0, node: '', version: null, finished_at: Number.parseInt(entry.stream_id, 10) },
});

type Kept = Pick<
  PageDetail,
  'result' | 'trajectory' | 'patch' | 'report' | 'failure_detail' | 'log_size' | 'missing'
>;

/** What a result and its artifact tell; `missing` says why there is none. */
export function pageResult(
  of: Result | OutputLine | null,
  content: ArtifactContent | null,
  missing: string | null,
): Kept {
  const { patch: linePatch = null, report: _summary, ...result } = (of ?? {}) as Partial<OutputLine>;
  const { trajectory = null, report = null, failure_detail = null, test_log = null } = content ?? {};
  return {
    result: of === null ? null : (result as Exclude<PageDetail['result'], null>),
    trajectory: trajectory && {
      ...trajectory,
      turns: trajectory.turns.map(({ tokens, ...turn }) => ({
        ...turn,
        token_count: tokens?.generation.length ?? null,
      })),
    },
    patch: content ? content.patch : linePatch,
    report,
    failure_detail,
    log_size: test_log === null ? null : Buffer.byteLength(test_log),
    missing,
  };
}

export function pageTokens(content: ArtifactContent | null, turn: number): PageTokens | null {
  const tokens = content?.trajectory?.turns[turn]?.tokens;
  if (!tokens) return null;
  return {
    prefix_length: tokens.prefix_length,
    prompt: [...tokens.prompt_suffix],
    generation: [...tokens.generation],
    log_probs: [...tokens.log_probs],
  };
}

/** Keeps the last few of what is dear to make: a page asks about the same rollout several times. */
export function remember<T>(make: (key: string) => Promise<T>, most: number): (key: string) => Promise<T> {
  const made = new Map<string, Promise<T>>();
  return (key) => {
    const known = made.get(key) ?? make(key);
    made.delete(key);
    made.set(key, known);
    known.catch(() => made.delete(key));
    for (const oldest of made.keys()) {
      if (made.size <= most) break;
      made.delete(oldest);
    }
    return known;
  };
}
