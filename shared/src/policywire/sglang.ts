/**
 * SGLang's way to tell tokens: `meta_info` with `output_token_logprobs`, a list of [log-probability, id, text].
 * Source: SGLang's documentation of the native /generate endpoint (return_logprob).
 */
import { z } from 'zod';

const Meta = z.object({
  output_token_logprobs: z.array(z.tuple([z.number(), z.number()], z.unknown())).nullish(),
  finish_reason: z.union([z.string(), z.object({ type: z.string() })]).nullish(),
  prompt_tokens: z.number().nullish(),
  completion_tokens: z.number().nullish(),
});

export type SglangMeta = {
  ids: number[] | null;
  logProbs: number[] | null;
  finishReason: string | null;
  usage: { prompt_tokens: number; completion_tokens: number } | null;
};

/** Null for anything but such a `meta_info`. */
export function readMeta(value: unknown): SglangMeta | null {
  const read = Meta.safeParse(value);
  if (!read.success) return null;
  const { output_token_logprobs: entries, finish_reason: finish } = read.data;
  const { prompt_tokens: prompt, completion_tokens: completion } = read.data;
  return {
    ids: entries?.map(([, id]) => id) ?? null,
    logProbs: entries?.map(([logProb]) => logProb) ?? null,
    finishReason: typeof finish === 'string' ? finish : (finish?.type ?? null),
    usage:
      typeof prompt === 'number' && typeof completion === 'number'
        ? { prompt_tokens: prompt, completion_tokens: completion }
        : null,
  };
}
