/** What an endpoint's own /models says of a model: which version it is, and how long its sequences may be. */
import { z } from 'zod';

const Models = z.object({
  data: z.array(
    z.looseObject({
      id: z.string(),
      version: z.string().nullish(),
      root: z.string().nullish(),
      /** Of an adapter: the model that it belongs to. */
      parent: z.string().nullish(),
      max_model_len: z.number().int().positive().nullish().catch(null),
    }),
  ),
});

export type ServedModel = {
  /** `version` of the model's entry, else its `root` (vLLM: the path the weights came from); null when neither tells. */
  version: string | null;
  /** Tokens of prompt and answer (`max_model_len`); null when it does not tell. */
  length: number | null;
};
export const UNKNOWN_MODEL: ServedModel = { version: null, length: null };

/** `answer`: the parsed body. What is no such list tells nothing. */
export function parseServedModel(answer: unknown, model: string): ServedModel {
  const list = Models.safeParse(answer).data?.data ?? [];
  const entry = list.find(({ id }) => id === model);
  if (!entry) return UNKNOWN_MODEL;
  const root = entry.root === entry.id ? null : entry.root;
  const parent = list.find(({ id }) => id === entry.parent);
  return {
    version: entry.version ?? root ?? null,
    length: entry.max_model_len ?? parent?.max_model_len ?? null,
  };
}
