/** The texts of single tokens, so that a message can show what differs and not only its number. */
import { authorizationAt, type PolicyKey, routeUrl } from '@swefarm/shared';
import { fetch } from 'undici';

const TIMEOUT_MS = 3_000;

/** By the endpoint's /detokenize; null when it has none, for whatever reason: it only adorns a message. */
export async function detokenize(
  url: string,
  model: string,
  apiKey: PolicyKey | null,
  ids: readonly number[],
  signal: AbortSignal,
): Promise<string[] | null> {
  try {
    return await Promise.all(
      ids.map(async (id) => {
        const address = routeUrl(url, 'detokenize');
        const response = await fetch(address, {
          method: 'POST',
          redirect: 'error',
          headers: { 'content-type': 'application/json', ...authorizationAt(apiKey, address) },
          body: JSON.stringify({ model, tokens: [id] }),
          signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
        });
        const { prompt } = (await response.json()) as { prompt?: unknown };
        if (typeof prompt !== 'string') throw new TypeError('no text');
        return prompt;
      }),
    );
  } catch {
    return null;
  }
}
