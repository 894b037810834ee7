/** Parses the bytes of a text completion of vLLM, or of SGLang (`meta_info`). */

import { RolloutFailure } from '@swefarm/shared';
import { z } from 'zod';
import { extractExperts } from '../tokens/experts.ts';
import { extractPromptIds, parseIds, parseLogProbs } from '../tokens/ids.ts';
import { AnswerError } from './errors.ts';
import { type ModelReply, parseJson, requireFinished } from './reply.ts';
import { parseSglangMeta } from './sglang.ts';
import { parseUsage } from './usage.ts';

const Choice = z.object({
  text: z.string(),
  finish_reason: z.string().nullish(),
  logprobs: z.object({ token_logprobs: z.unknown().optional() }).nullish(),
  token_ids: z.unknown().optional(),
  prompt_token_ids: z.unknown().optional(),
  meta_info: z.unknown().optional(),
});
const Completion = z.object({
  choices: z.array(Choice).min(1),
  usage: z.unknown().optional(),
});
/** SGLang's /generate returns a single choice without the `choices` list. */
const Generated = z.object({ text: z.string(), meta_info: z.unknown(), output_ids: z.unknown().optional() });

export type CompletionReply = Omit<ModelReply, 'message'> & {
  text: string;
  generation_token_ids: Int32Array;
};

export const missingIdsFailure = (): RolloutFailure =>
  new RolloutFailure(
    'policy_tokens',
    'the completions endpoint returned no token ids (return_token_ids): token mode token-in needs them',
  );

/**
 * @throws AnswerError if the bytes are not a completion, or the engine aborted it or failed; RolloutFailure `policy_tokens` if there are no
 * token ids, which the next prompt needs
 */
export function parseCompletion(body: Buffer): CompletionReply {
  const { json: bytes, experts } = extractExperts(body);
  const { text: json, ids: prompt } = extractPromptIds(bytes);
  const value = parseJson(json);
  const framed = Completion.safeParse(value);
  const bare = framed.success ? null : Generated.safeParse(value);
  const choice =
    framed.data?.choices[0] ?? (bare?.success ? { ...bare.data, token_ids: bare.data.output_ids } : null);
  if (!choice) throw new AnswerError('garbage', `no completion: ${json.slice(0, 100)}`);
  const read: Partial<z.infer<typeof Choice>> = choice;
  const meta = parseSglangMeta(read.meta_info);
  const finishReason = read.finish_reason ?? meta?.finishReason ?? null;
  requireFinished(finishReason);
  const generation = parseIds(read.token_ids ?? meta?.ids);
  if (generation === null) throw missingIdsFailure();
  return {
    text: choice.text,
    finish_reason: finishReason,
    usage: parseUsage(framed.data?.usage) ?? meta?.usage ?? null,
    prompt_token_ids: prompt ?? parseIds(read.prompt_token_ids),
    generation_token_ids: generation,
    generation_log_probs: parseLogProbs(read.logprobs?.token_logprobs ?? meta?.logProbs),
    ...(experts ? { routed_experts: experts } : {}),
  };
}
