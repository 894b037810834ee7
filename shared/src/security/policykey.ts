/** The API key of a policy. The key is sent only to its origins (scheme, host and port). */
import type { Secret } from './secret.ts';

export type PolicyKey = {
  readonly secret: Secret;
  /** Origins in the form of {@link originOf}; empty: the key is never sent. */
  readonly origins: readonly string[];
};

/** Returns the origin, such as `https://host:port`, without a default port; null if the value is not an http or https URL. */
export function originOf(url: unknown): string | null {
  const parsed = typeof url === 'string' ? URL.parse(url) : null;
  return parsed && /^https?:$/.test(parsed.protocol) ? parsed.origin : null;
}

/** Returns the distinct origins of a list of URLs; an empty list for other values. */
export function originsOf(urls: unknown): string[] {
  if (!Array.isArray(urls)) return [];
  return [...new Set(urls.map(originOf).filter((origin) => origin !== null))];
}

/** Returns the key if this address may receive it, otherwise null. Call this function for each request. */
export function keyAt(key: PolicyKey | null, address: string): string | null {
  const origin = originOf(address);
  return key !== null && origin !== null && key.origins.includes(origin) ? key.secret.reveal() : null;
}

/** Returns the authorization header if this address may receive the key, otherwise no header. */
export function authorizationAt(key: PolicyKey | null, address: string): { authorization?: string } {
  const shown = keyAt(key, address);
  return shown === null ? {} : { authorization: `Bearer ${shown}` };
}
