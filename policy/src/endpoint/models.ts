/** Reads version and maximum sequence length of a model from the answer of an endpoint's /models. */
import { z } from 'zod';

/** Id of a model, and the fields that vLLM and SGLang add. */
const ListedModel = z.object({
  id: z.string(),
  version: z.string().nullish(),
  root: z.string().nullish(),
  /** Id of the base model of an adapter. */
  parent: z.string().nullish(),
  max_model_len: z.number().int().positive().nullish().catch(null),
});
export type ListedModel = z.infer<typeof ListedModel>;
const Models = z.object({ data: z.array(ListedModel) });

export type ServedModel = {
  /** `version` of the model's entry, else its `root` if that is not its id (vLLM: the path of the weights); null: neither. */
  version: string | null;
  /** Maximum number of tokens of prompt and answer together: `max_model_len` of the model or its base model; null: not reported. */
  length: number | null;
};
export const UNKNOWN_MODEL: ServedModel = { version: null, length: null };

/** Returns the models in a parsed answer; null if `body` is not a list of models. */
export const parseModels = (body: unknown): ListedModel[] | null => Models.safeParse(body).data?.data ?? null;

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
