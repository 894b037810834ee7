/** Converts results and artifacts to the records of the page. */
import { withNamedPictures } from '@swefarm/policy';
import {
  type ArtifactContent,
  describeUnreadable,
  type Result,
  type UnreadableResult,
  withoutMiddle,
} from '@swefarm/shared';
import type { LineSummary } from '@swefarm/trajectories';
import type { PageDetail, PageRollout, PageTokens } from './data.ts';

const REASON_LENGTH = 160;

export function pageRollout(
  result: (Result | LineSummary) & Partial<Pick<Result, 'facts'>>,
  instance: number,
): PageRollout {
  return {
    instance,
    index: result.rollout_index,
    outcome: result.outcome,
    resolved: result.resolved,
    reward: result.reward,
    exit: result.exit_status,
    failure: result.failure?.class ?? null,
    reason: result.failure ? withoutMiddle(result.failure.message, REASON_LENGTH) : null,
    forged: result.facts?.trust === 'forged',
    turns: result.turns,
    tokens: result.tokens.prompt + result.tokens.completion,
    seconds: result.seconds.total,
    attempt: result.attempt,
    node: result.node,
    version: result.policy_version,
    finished_at: result.finished_at,
  };
}

/** An unreadable result counts as failed. */
export const pageUnreadable = (entry: UnreadableResult, instance: number, index: number): PageRollout => ({
  instance,
  index,
  outcome: 'failed',
  resolved: null,
  reward: null,
  exit: null,
  failure: 'result_unreadable',
  reason: describeUnreadable(entry),
  forged: false,
  turns: 0,
  tokens: 0,
  seconds: 0,
  attempt: 0,
  node: '',
  version: null,
  finished_at: Number.parseInt(entry.stream_id, 10),
});

/** @param missing why there is no artifact */
export function pageResult(
  result: PageDetail['result'],
  content: ArtifactContent | null,
  missing: string | null,
) {
  const { trajectory = null, report = null, failure_detail = null, test_log = null } = content ?? {};
  return {
    result,
    trajectory: trajectory && {
      ...trajectory,
      messages: trajectory.messages.map(withNamedPictures),
      turns: trajectory.turns.map(({ tokens, ...turn }) => ({
        ...turn,
        token_count: tokens?.generation.length ?? null,
      })),
    },
    patch: content?.patch ?? null,
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
