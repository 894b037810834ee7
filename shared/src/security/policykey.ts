/** The key of a policy and the origins it was given for: it is shown at these, and nowhere else, whoever names an endpoint. */
import type { Secret } from './secret.ts';

export type PolicyKey = {
  readonly secret: Secret;
  /** Scheme, host and port, as {@link originOf} writes them. Empty: it is shown nowhere. */
  readonly origins: readonly string[];
};

/** `https://host:port`, a default port left out; null for what is no http or https URL. */
export function originOf(url: unknown): string | null {
  const parsed = typeof url === 'string' ? URL.parse(url) : null;
  return parsed && /^https?:$/.test(parsed.protocol) ? parsed.origin : null;
}

/** The origins of a list, each once; of anything else none. */
export function originsOf(urls: unknown): string[] {
  if (!Array.isArray(urls)) return [];
  return [...new Set(urls.map(originOf).filter((origin) => origin !== null))];
}

/** The key itself where this address may see it, else null. Ask with the whole address of each request, as it is sent. */
export function keyAt(key: PolicyKey | null, address: string): string | null {
  const origin = originOf(address);
  return key !== null && origin !== null && key.origins.includes(origin) ? key.secret.reveal() : null;
}

/** Headers that show the key where this address may see it. */
export function authorizationAt(key: PolicyKey | null, address: string): { authorization?: string } {
  const shown = keyAt(key, address);
  return shown === null ? {} : { authorization: `Bearer ${shown}` };
}
