/** What an endpoint's own /models says of a model: which version it is, and how long its sequences may be. */
import type { Model } from 'openai/resources/models';
import { z } from 'zod';

/** The SDK's model, and what vLLM and SGLang add. */
export type ListedModel = Pick<Model, 'id'> & {
  version?: string | null | undefined;
  root?: string | null | undefined;
  /** Of an adapter: the model that it belongs to. */
  parent?: string | null | undefined;
  max_model_len?: number | null | undefined;
};

const Listed: z.ZodType<ListedModel> = z.object({
  id: z.string(),
  version: z.string().nullish(),
  root: z.string().nullish(),
  parent: z.string().nullish(),
  max_model_len: z.number().int().positive().nullish().catch(null),
});
const Models = z.object({ data: z.array(Listed) });

export type ServedModel = {
  /** `version` of the model's entry, else its `root` (vLLM: the path the weights came from); null when neither tells. */
  version: string | null;
  /** Tokens of prompt and answer (`max_model_len`); null when it does not tell. */
  length: number | null;
};
export const UNKNOWN_MODEL: ServedModel = { version: null, length: null };

/** Null for what is no list of models. `body`: the parsed answer. */
export const parseModels = (body: unknown): ListedModel[] | null => Models.safeParse(body).data?.data ?? null;

/** What a list tells of one model. */
export function servedModelIn(list: readonly ListedModel[], model: string): ServedModel {
  const entry = list.find(({ id }) => id === model);
  if (!entry) return UNKNOWN_MODEL;
  const root = entry.root === entry.id ? null : entry.root;
  const parent = list.find(({ id }) => id === entry.parent);
  return {
    version: entry.version ?? root ?? null,
    length: entry.max_model_len ?? parent?.max_model_len ?? null,
  };
}
