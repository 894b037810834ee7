/** Builds the bodies of requests, with the token ids that the server needs. */

import type { Message, PolicyConfig, RequestedSampling, ToolDefinition } from '@swefarm/shared';
import { effectiveSampling, otherFields } from '@swefarm/shared';
import type { ChatCompletionCreateParams } from 'openai/resources/chat/completions';
import type { CompletionCreateParams } from 'openai/resources/completions';
import { renderIds } from '../tokens/ids.ts';
import type { Continued } from './continued.ts';
import { type EncodedConversation, encodeConversation } from './conversation.ts';
import type { BodyPiece } from './post.ts';
import { streamFields } from './stream.ts';

/**
 * Returns the JSON of a Chat Completions request in pieces. In mode `echo` only the last answer has token ids: they cover the whole
 * sequence, and ids on every answer would make requests quadratic in turns.
 *
 * @param encoded the same object for all turns of a conversation, so that each message is encoded once
 */
export function chatBody(
  config: PolicyConfig,
  messages: readonly Message[],
  tools: readonly ToolDefinition[],
  last: Continued | null,
  sampling: RequestedSampling,
  encoded: EncodedConversation = encodeConversation(),
): BodyPiece[] {
  const wantsTokens = config.token_mode === 'echo' || config.require_tokens;
  const own = {
    model: config.model,
    ...(tools.length > 0 ? { tools: [...tools] } : {}),
    ...(wantsTokens ? { logprobs: true, return_token_ids: true } : {}),
    ...streamFields(config),
  } satisfies Partial<ChatCompletionCreateParams> & ServerFields;
  const rest = JSON.stringify({
    ...own,
    ...otherFields(config.extra_body),
    ...samplingFields(config, sampling),
  });
  if (config.token_mode === 'echo' && last)
    return ['{"messages":', ...withTokens(messages, last), ',', rest.slice(1)];
  return [encoded.opening(messages), '],', rest.slice(1)];
}

/** Fields of vLLM and SGLang that the SDK's types lack. */
type ServerFields = { return_token_ids?: boolean; skip_special_tokens?: boolean };

function samplingFields(
  config: PolicyConfig,
  { max_tokens: most, seed }: RequestedSampling,
): Record<string, unknown> {
  const { max_tokens: _most, seed: _seed, ...shape } = effectiveSampling(config);
  return {
    ...shape,
    // Without `max_tokens`, the server lets a chat answer fill the context.
    ...(most === undefined || most === null ? {} : { max_tokens: most }),
    ...(seed === undefined ? {} : { seed }),
  };
}

/** Returns the messages as JSON, with the ids inserted into the last answer. */
function withTokens(messages: readonly Message[], last: Continued): BodyPiece[] {
  const { prompt_token_ids: prompt, generation_token_ids: generation, generation_log_probs: logProbs } = last;
  const { at, message } = last.point;
  if (at >= messages.length || !prompt || !generation || !logProbs) return [JSON.stringify(messages)];
  const before = messages.slice(0, at).map((one) => `${JSON.stringify(one)},`);
  const after = messages.slice(at + 1).map((one) => `,${JSON.stringify(one)}`);
  return [
    `[${before.join('')}${JSON.stringify(message).slice(0, -1)}`,
    ',"prompt_token_ids":',
    renderIds(prompt),
    ',"generation_token_ids":',
    renderIds(generation),
    ',"generation_log_probs":',
    JSON.stringify(Array.from(logProbs)),
    `}${after.join('')}]`,
  ];
}

/** Fields that only chat endpoints accept. Some servers refuse unknown fields at the completions endpoint. */
const CHAT_ONLY = new Set([
  'chat_template',
  'chat_template_kwargs',
  'tool_choice',
  'parallel_tool_calls',
  'reasoning_effort',
  'response_format',
  'top_logprobs',
]);

/**
 * Returns the JSON of a completions request. The answer includes special tokens, because calls and thinking are parsed here. `max_tokens`
 * is always sent, because its default is 16. Null means no limit to vLLM; SGLang refuses null with an error that contains the limit.
 */
export function completionBody(
  config: PolicyConfig,
  prompt: Int32Array,
  sampling: RequestedSampling,
): BodyPiece[] {
  const extra = Object.entries(otherFields(config.extra_body)).filter(([key]) => !CHAT_ONLY.has(key));
  const own = {
    model: config.model,
    max_tokens: null,
    logprobs: 0,
    return_token_ids: true,
    skip_special_tokens: false,
    ...streamFields(config),
  } satisfies Partial<CompletionCreateParams> & ServerFields;
  const rest = JSON.stringify({
    ...own,
    ...Object.fromEntries(extra),
    ...samplingFields(config, sampling),
  });
  return ['{"prompt":', renderIds(prompt), ',', rest.slice(1)];
}
