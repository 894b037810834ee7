/** Asks endpoints for their /models: the version, where no trainer and no header tells of it, and the length of sequences. */
import {
  createEndpointClient,
  type PolicyKey,
  type ServedModel,
  servedModelIn,
  UNKNOWN_MODEL,
} from '@swefarm/shared';

const TIMEOUT_MS = 5_000;
const FRESH_MS = 30_000;
/** After this an endpoint that could not be asked is asked again. */
const AGAIN_MS = 5_000;
/** `length`: the last known, for when the endpoint cannot be asked. */
type Known = { at: number; served: Promise<ServedModel | null>; length: number | null };
const known = new Map<string, Known>();

/** What the endpoint listed within the last half minute. One that cannot be asked has no version, and is asked again soon. */
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

/** Null when it cannot be asked: a run that needs versions for certain names them itself. */
async function ask(url: string, model: string, apiKey: PolicyKey | null): Promise<ServedModel | null> {
  try {
    const list = await createEndpointClient(url, apiKey).models(AbortSignal.timeout(TIMEOUT_MS));
    return servedModelIn(list, model);
  } catch {
    return null;
  }
}
