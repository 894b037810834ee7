/** Removes secrets from endpoints and errors before they appear in logs and messages. */
import { keyAt, type PolicyKey, withoutSlash } from '@swefarm/shared';

export function withoutUser(url: string): string {
  const parsed = new URL(url);
  parsed.username = '';
  parsed.password = '';
  return withoutSlash(parsed.href);
}

/** Replaces the key in a text, because endpoints often quote the key that they refuse. Returns at most 300 characters. */
export const redact = (text: string, apiKey: PolicyKey | null): string =>
  (apiKey ? text.replaceAll(apiKey.secret.reveal(), '[secret]') : text).slice(0, 300);

/** Returns why this endpoint does not receive the run's key; null if it does, or if there is no key. */
export function whyKeyWithheld(apiKey: PolicyKey | null, url: string): string | null {
  if (apiKey === null || keyAt(apiKey, url) !== null) return null;
  const origins = apiKey.origins.join(', ') || 'no origin';
  return `the run's key is for ${origins}, so it was not sent here (policy_api_key_origins, api_key_origins)`;
}
