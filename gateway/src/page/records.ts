/** Converts results and artifacts to the records of the page. */
import { withNamedPictures } from '@swefarm/policy';
import {
  type ArtifactContent,
  describeUnreadable,
  type Result,
  type Trajectory,
  type UnreadableResult,
  withoutMiddle,
} from '@swefarm/shared';
import type { LineSummary } from '@swefarm/trajectories';
import type { PageDetail, PageOutput, PageRollout, PageTokens } from './data.ts';

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
    // Without weights, the reward itself shows whether the rollout was rewarded.
    ...(result.reward_parts && result.reward_components ? { reward_parts: result.reward_parts } : {}),
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
    trajectory: trajectory && pageTrajectory(trajectory),
    patch: content?.patch ?? null,
    report,
    failure_detail,
    outputs: (content?.outputs ?? []).map(({ name, content: stored, bytes }) => ({
      name,
      stored: typeof stored === 'string' ? Buffer.byteLength(stored) : stored.length,
      bytes,
    })),
    log_size: test_log === null ? null : Buffer.byteLength(test_log),
    missing,
  };
}

const pageTrajectory = ({ lines, ...trajectory }: Trajectory) => ({
  ...trajectory,
  ...withoutTokens(trajectory),
  ...(lines ? { lines: lines.map((line) => ({ ...line, ...withoutTokens(line) })) } : {}),
});

const withoutTokens = ({ messages, turns }: Pick<Trajectory, 'messages' | 'turns'>) => ({
  messages: messages.map(withNamedPictures),
  turns: turns.map(({ tokens, ...turn }) => ({ ...turn, token_count: tokens?.generation.length ?? null })),
});

/** Returns the token ids of a turn. `line`: id of the turn's line; null: the main line. */
export function pageTokens(
  content: ArtifactContent | null,
  turn: number,
  line: string | null,
): PageTokens | null {
  const trajectory = content?.trajectory;
  const found = trajectory?.lines?.find(({ id }) => id === line) ?? (line === null ? trajectory : null);
  const tokens = found?.turns[turn]?.tokens;
  if (!tokens) return null;
  return {
    prefix_length: tokens.prefix_length,
    prompt: [...tokens.prompt_suffix],
    generation: [...tokens.generation],
    log_probs: [...tokens.log_probs],
  };
}

/** Returns a stored output of the agent; null when there is none of this name. */
export function pageOutput(content: ArtifactContent | null, name: string): PageOutput['output'] {
  const found = content?.outputs?.find((one) => one.name === name);
  if (!found) return null;
  if (typeof found.content === 'string') return { text: found.content, base64: null };
  const { buffer, byteOffset, byteLength } = found.content;
  return { text: null, base64: Buffer.from(buffer, byteOffset, byteLength).toString('base64') };
}
