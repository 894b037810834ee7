/** Rebuilds replies from recorded turns, so that a conversation continues at another client without asking the endpoint again. */
import { effectiveSampling, type PolicyConfig, type RecordedTurn, type TurnExperts } from '@swefarm/shared';
import type { Continued } from './endpoint/continued.ts';
import type { ModelReply } from './endpoint/reply.ts';
import { ID_BYTES, type RoutedExperts } from './tokens/experts.ts';
import { joinIds } from './tokens/ids.ts';

/** `after`: the state from which a client continues after the reply. */
export type RecordedReply = ModelReply & { after: Continued };

/** Yields the reply of each turn in order. Each contains the whole prompt. @param start number of messages before the first answer */
export function* recordedReplies(
  config: PolicyConfig,
  turns: readonly RecordedTurn[],
  start: number,
): Generator<RecordedReply> {
  let seen = new Int32Array(0);
  let firstPrompt: number | null = null;
  let at = start - 1;
  for (const [index, { observed, answer: message, turn }] of turns.entries()) {
    const { tokens, finish_reason, usage } = turn;
    const prompt = tokens && joinIds(seen.subarray(0, tokens.prefix_length), tokens.prompt_suffix);
    if (prompt) {
      firstPrompt ??= prompt.length;
      seen = joinIds(prompt, tokens.generation);
    }
    at += observed.length + 1;
    const ids = {
      prompt_token_ids: prompt,
      generation_token_ids: tokens?.generation ?? null,
      generation_log_probs: tokens?.log_probs ?? null,
    };
    const ended = finish_reason !== 'length' && !hasStop(config);
    const point = { message, at, answer: index + 1, ended, firstPrompt };
    const routed_experts = tokens?.routed_experts ? foundExperts(tokens.routed_experts) : null;
    yield { ...ids, message, finish_reason, usage, routed_experts, after: { ...ids, point } };
  }
}

const hasStop = (config: PolicyConfig): boolean =>
  config.token_mode === 'token-in' && effectiveSampling(config).stop !== undefined;

/** Returns stored rows as the answer of an endpoint; rows before the stored ones cannot be decoded. */
function foundExperts({ dtype, layers, top_k, start, rows }: TurnExperts): RoutedExperts {
  const size = layers * top_k * ID_BYTES[dtype];
  return {
    dtype,
    layers,
    top_k,
    rows: start + rows.length / size,
    decode: (from, to) => rows.slice((from - start) * size, (to - start) * size),
  };
}
