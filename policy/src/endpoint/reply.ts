/** Parses and validates the bytes of a chat completion. Later code trusts the result. */

import type { Message } from '@swefarm/shared';
import { z } from 'zod';
import { extractExperts } from '../tokens/experts.ts';
import { extractPromptIds, parseIds, parseLogProbs } from '../tokens/ids.ts';
import type { ReplyTokens } from '../tokens/ledger.ts';
import { AnswerError } from './errors.ts';
import { parseSglangMeta } from './sglang.ts';
import { parseUsage } from './usage.ts';

export type ModelReply = ReplyTokens & { message: Message; finish_reason: string | null };

const ToolCall = z.object({
  id: z.string().nullish(),
  function: z.object({ name: z.string(), arguments: z.unknown().optional() }),
});

/** Token lists are `unknown` here because they are long: parseIds() and parseLogProbs() parse them faster than a schema. */
const Completion = z.object({
  choices: z
    .array(
      z.object({
        message: z.looseObject({
          content: z.string().nullish(),
          tool_calls: z.array(ToolCall).nullish(),
          reasoning_content: z.string().nullish(),
          reasoning: z.string().nullish(),
        }),
        finish_reason: z.string().nullish(),
        logprobs: z.object({ content: z.array(z.unknown()).nullish() }).nullish(),
        token_ids: z.unknown().optional(),
        prompt_token_ids: z.unknown().optional(),
        meta_info: z.unknown().optional(),
      }),
    )
    .min(1),
  usage: z.unknown().optional(),
  prompt_token_ids: z.unknown().optional(),
});
type Choice = z.infer<typeof Completion>['choices'][number];

/** @throws AnswerError when the bytes are not a chat completion, or the engine aborted it or failed */
export function parseReply(body: Buffer): ModelReply {
  const { json, experts } = extractExperts(body);
  const { text, ids } = extractPromptIds(json);
  const parsed = Completion.safeParse(parseJson(text));
  const choice = parsed.data?.choices[0];
  if (!parsed.success || !choice) {
    const issue = parsed.error?.issues[0];
    const where = issue ? `${issue.path.join('.') || 'answer'}: ${issue.message}` : 'no choices';
    throw new AnswerError('garbage', `no chat completion (${where}): ${text.slice(0, 100)}`);
  }
  const finishReason = choice.finish_reason ?? null;
  requireFinished(finishReason);
  const { message } = choice;
  const meta = parseSglangMeta(choice.meta_info);
  return {
    message: readMessage(message),
    finish_reason: finishReason,
    usage: parseUsage(parsed.data.usage),
    // Servers send token fields in three forms: vLLM in the choice or the answer, NeMo Gym in the message, SGLang in `meta_info`.
    prompt_token_ids:
      ids ?? parseIds(message.prompt_token_ids ?? choice.prompt_token_ids ?? parsed.data.prompt_token_ids),
    generation_token_ids: parseIds(
      message.generation_token_ids ?? choice.token_ids ?? meta?.ids ?? idsInLogProbs(choice),
    ),
    generation_log_probs: parseLogProbs(message.generation_log_probs ?? meta?.logProbs ?? logProbsOf(choice)),
    ...(experts ? { routed_experts: experts } : {}),
  };
}

/**
 * Rejects an answer that the engine aborted, for example to load new weights or to shut down, or that ended with an error.
 *
 * @throws AnswerError `aborted` or `broken_off`
 */
export function requireFinished(finishReason: string | null): void {
  if (finishReason !== 'abort' && finishReason !== 'error') return;
  const kind = finishReason === 'abort' ? 'aborted' : 'broken_off';
  throw new AnswerError(kind, `the engine broke the answer off (${finishReason})`);
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new AnswerError('garbage', `the answer is not JSON: ${text.slice(0, 100)}`, { cause: error });
  }
}

const TOKEN_FIELDS = [
  ...['prompt_token_ids', 'generation_token_ids', 'generation_log_probs'],
  ...['routed_experts', 'prompt_routed_experts'],
];

export function readMessage(raw: Choice['message']): Message {
  const { content, tool_calls: toolCalls, ...rest } = raw;
  const others = Object.entries(rest).filter(
    ([key, value]) =>
      value !== null &&
      value !== undefined &&
      !(Array.isArray(value) && value.length === 0) &&
      !TOKEN_FIELDS.includes(key),
  );
  const calls = (toolCalls ?? []).map((call, index) => ({
    id: call.id || `call_${index}`,
    type: 'function' as const,
    function: { name: call.function.name, arguments: argumentsText(call.function.arguments) },
  }));
  const reasoning = raw.reasoning_content ?? raw.reasoning;
  return {
    ...Object.fromEntries(others),
    role: 'assistant',
    // Chat templates print null as text, so the content is null only beside tool calls.
    content: content ?? (calls.length > 0 ? null : ''),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...(reasoning ? { reasoning_content: reasoning } : {}),
  };
}

const argumentsText = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value);

const logProbsOf = (choice: Choice): unknown =>
  choice.logprobs?.content?.map((entry) => (entry as { logprob?: unknown } | null)?.logprob);

/** Reads ids from token texts: vLLM's option `return_tokens_as_token_ids` replaces each text by `token_id:ID`. */
function idsInLogProbs(choice: Choice): unknown {
  return choice.logprobs?.content?.map((entry) => {
    const token = (entry as { token?: unknown } | null)?.token;
    return typeof token === 'string' && token.startsWith('token_id:')
      ? token.slice('token_id:'.length)
      : null;
  });
}
