/** The version that an endpoint serves by its own /models, for policies that no trainer and no header tells of. */
import { authorizationAt, type PolicyKey } from '@swefarm/shared';
import { fetch } from 'undici';
import { z } from 'zod';

const Models = z.object({
  data: z.array(z.looseObject({ id: z.string(), version: z.string().nullish(), root: z.string().nullish() })),
});

const TIMEOUT_MS = 5_000;
const FRESH_MS = 30_000;
const known = new Map<string, { at: number; version: Promise<string | null> }>();

/** `version` of the model's entry, else its `root` (vLLM: the path the weights came from); null when neither tells. */
export function servedVersion(url: string, model: string, apiKey: PolicyKey | null): Promise<string | null> {
  const key = `${url} ${model}`;
  const before = known.get(key);
  if (before && performance.now() - before.at < FRESH_MS) return before.version;
  const version = ask(url, model, apiKey);
  known.set(key, { at: performance.now(), version });
  return version;
}

async function ask(url: string, model: string, apiKey: PolicyKey | null): Promise<string | null> {
  try {
    const address = `${url.replace(/\/$/, '')}/models`;
    const response = await fetch(address, {
      headers: authorizationAt(apiKey, address),
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const models = Models.safeParse(await response.json());
    const entry = models.data?.data.find(({ id }) => id === model);
    const root = entry?.root === entry?.id ? null : entry?.root;
    return entry?.version ?? root ?? null;
  } catch {
    // It is a courtesy: who wants versions for certain says them.
    return null;
  }
}
