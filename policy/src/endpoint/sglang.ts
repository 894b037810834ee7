/**
 * Parses SGLang's token fields: `meta_info` with `output_token_logprobs`, a list of [log-probability, id, text].
 * Source: SGLang's documentation of the native /generate endpoint (return_logprob).
 */
import { z } from 'zod';
import { parseUsage } from './usage.ts';

const Meta = z.object({
  output_token_logprobs: z.array(z.tuple([z.number(), z.number()], z.unknown())).nullish(),
  finish_reason: z.union([z.string(), z.object({ type: z.string() })]).nullish(),
  prompt_tokens: z.unknown().optional(),
  completion_tokens: z.unknown().optional(),
});

/** Returns the token fields; null if `value` is no `meta_info` of SGLang. */
export function parseSglangMeta(value: unknown) {
  const read = Meta.safeParse(value);
  if (!read.success) return null;
  const { output_token_logprobs: entries, finish_reason: finish } = read.data;
  return {
    ids: entries?.map(([, id]) => id) ?? null,
    logProbs: entries?.map(([logProb]) => logProb) ?? null,
    finishReason: typeof finish === 'string' ? finish : (finish?.type ?? null),
    usage: parseUsage(read.data),
  };
}
