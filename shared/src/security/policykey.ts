/** The key of a policy and the origins it was given for: it is sent to these only, whatever endpoint a run or caller names. */
import type { Secret } from './secret.ts';

export type PolicyKey = {
  readonly secret: Secret;
  /** Scheme, host and port, as {@link originOf} writes them. Empty: the key is sent nowhere. */
  readonly origins: readonly string[];
};

/** `https://host:port` without a default port; null when the value is not an http or https URL. */
export function originOf(url: unknown): string | null {
  const parsed = typeof url === 'string' ? URL.parse(url) : null;
  return parsed && /^https?:$/.test(parsed.protocol) ? parsed.origin : null;
}

/** The distinct origins of a list of URLs; empty for anything else. */
export function originsOf(urls: unknown): string[] {
  if (!Array.isArray(urls)) return [];
  return [...new Set(urls.map(originOf).filter((origin) => origin !== null))];
}

/** The key where this address may receive it, else null. Call it for each request, with the whole address it is sent to. */
export function keyAt(key: PolicyKey | null, address: string): string | null {
  const origin = originOf(address);
  return key !== null && origin !== null && key.origins.includes(origin) ? key.secret.reveal() : null;
}

/** The authorization header where this address may receive the key. */
export function authorizationAt(key: PolicyKey | null, address: string): { authorization?: string } {
  const shown = keyAt(key, address);
  return shown === null ? {} : { authorization: `Bearer ${shown}` };
}
