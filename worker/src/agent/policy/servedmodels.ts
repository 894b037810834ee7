/** Reads `/models` of endpoints for the sequence length, and for the version when neither trainer, header nor run gives it. */
import { createEndpointClient, type ServedModel, servedModelIn, UNKNOWN_MODEL } from '@swefarm/policy';
import type { PolicyKey } from '@swefarm/shared';

const TIMEOUT_MS = 5_000;
const FRESH_MS = 30_000;
/** Time before the next request to an endpoint that did not answer. */
const AGAIN_MS = 5_000;
/** `length`: the last known sequence length, used when the endpoint does not answer. */
type Known = { at: number; served: Promise<ServedModel | null>; length: number | null };
const known = new Map<string, Known>();

/** Returns the model as the endpoint listed it within the last {@link FRESH_MS}. An endpoint that does not answer has no version. */
export async function servedModel(
  url: string,
  model: string,
  apiKey: PolicyKey | null,
): Promise<ServedModel> {
  const key = `${url} ${model}`;
  let before = known.get(key);
  if (!before || performance.now() - before.at >= FRESH_MS) {
    before = { at: performance.now(), served: ask(url, model, apiKey), length: before?.length ?? null };
    known.set(key, before);
  }
  const served = await before.served;
  if (served === null) {
    before.at = Math.min(before.at, performance.now() - FRESH_MS + AGAIN_MS);
    return { ...UNKNOWN_MODEL, length: before.length };
  }
  before.length = served.length;
  return served;
}

async function ask(url: string, model: string, apiKey: PolicyKey | null): Promise<ServedModel | null> {
  try {
    const list = await createEndpointClient(url, apiKey).models(AbortSignal.timeout(TIMEOUT_MS));
    return servedModelIn(list, model);
  } catch {
    return null;
  }
}
