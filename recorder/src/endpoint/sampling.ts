/** Asks the policy for the answer to one request, and adds the answer to the tree. */
import { turnOf } from '@swefarm/policy';
import { RolloutFailure, type TurnRequest } from '@swefarm/shared';
import { type Answer, type Asked, messagesOf } from '../lines/answer.ts';
import { withUniqueIds } from '../lines/callids.ts';
import { readAnswer } from '../lines/calls.ts';
import { lineTo, promptIds, recordAnswerTokens } from '../lines/tokens.ts';
import type { HistoryTree } from '../lines/tree.ts';
import type { Continued, NoRoom, PolicyLine, RecordedReply, RecorderOptions } from '../recorder.ts';

/**
 * Thrown when the endpoint or the template refused what the agent sent; `cause`: the failure. Any command in the sandbox can send a history
 * that no server accepts, and must not fail the rollout by it.
 */
export class HistoryRefused extends Error {
  override readonly name = 'HistoryRefused';
}

export type Sampling = ReturnType<typeof createSampling>;

export function createSampling(options: RecorderOptions, tree: HistoryTree) {
  /** The open lines, by their last answer. */
  const lines = new Map<Answer, PolicyLine>();
  const taken = new Set<string>();

  const lineAfter = (parent: Answer | null): PolicyLine => {
    const line = parent ? lines.get(parent) : undefined;
    if (!parent) return options.openLine();
    lines.delete(parent);
    return line ?? options.openLine(continuedFrom(parent));
  };

  const add = (asked: Asked, reply: RecordedReply): Answer => {
    const { number, match, id, tools, callsAllowed } = asked;
    const { tokens, experts, isCut } = recordAnswerTokens(match.parent, reply, number, options.policy);
    const { malformed: rule } = options.card.api;
    const read = readAnswer(reply, { tools, callsAllowed, malformed: rule });
    const given = withUniqueIds(read.message, id, taken);
    const recorded = isCut
      ? { ...match, matched: 'other_tokens' as const, parent: null, tail: messagesOf(asked.history) }
      : match;
    return tree.answer(asked, {
      match: recorded,
      given: { id, message: given.message, unread: read.unread },
      ...{ message: read.message, callIds: given.callIds, malformed: read.malformed },
      turn: { ...turnOf(reply, 0), request: requestOf(asked, recorded), tokens },
      ...{ point: reply.after, experts },
    });
  };

  return {
    /**
     * Asks the policy. Throws RolloutFailure `policy_*`, HistoryRefused, or the signal's reason.
     *
     * @param maxTokens most tokens of the answer; null: no limit beside those of the run
     */
    async sample(asked: Asked, maxTokens: number | null, signal: AbortSignal): Promise<Answer | NoRoom> {
      const { match, tools, number } = asked;
      const line = lineAfter(match.parent);
      const before = lineTo(match.parent).flatMap(({ match: { tail }, message }) => [...tail, message]);
      const messages = [...before, ...match.tail];
      const request = { messages, tools, maxTokens, seedTurn: number, signal };
      const reply = await line.complete(request).catch((error: unknown) => {
        throw isRefusal(error, match) ? new HistoryRefused('refused', { cause: error }) : error;
      });
      if ('context_overflow' in reply) return reply;
      signal.throwIfAborted();
      const answer = add(asked, reply);
      lines.set(answer, line);
      return answer;
    },
  };
}

/** A whole prompt that the template cannot render is the agent's fault; lost token ids and what follows an answer of ours are not. */
const isRefusal = (error: unknown, { parent }: Asked['match']): boolean =>
  error instanceof RolloutFailure &&
  (error.failureClass === 'policy_bad_request' ||
    (error.failureClass === 'policy_template' && parent === null));

function continuedFrom(answer: Answer): Continued {
  const { tokens } = answer.turn;
  return {
    point: answer.point,
    prompt_token_ids: promptIds(answer),
    generation_token_ids: tokens?.generation ?? null,
    generation_log_probs: tokens?.log_probs ?? null,
  };
}

const requestOf = ({ dialect, joined }: Asked, { matched, repaired }: Asked['match']): TurnRequest => ({
  ...{ dialect, matched, delivered: false },
  ...(joined > 0 ? { repeated: joined } : {}),
  ...(repaired ? { repaired: true as const } : {}),
});
