/** Removes secrets from the endpoints and errors that logs and messages show. */
import { keyAt, type PolicyKey, withoutSlash } from '@swefarm/shared';

export function withoutUser(url: string): string {
  const parsed = new URL(url);
  parsed.username = '';
  parsed.password = '';
  return withoutSlash(parsed.href);
}

/** Endpoints often quote the key that they refuse. */
export const redact = (text: string, apiKey: PolicyKey | null): string =>
  (apiKey ? text.replaceAll(apiKey.secret.reveal(), '[secret]') : text).slice(0, 300);

/** Why this endpoint does not get the run's key; null when it does, or when there is none. */
export function whyKeyWithheld(apiKey: PolicyKey | null, url: string): string | null {
  if (apiKey === null || keyAt(apiKey, url) !== null) return null;
  const origins = apiKey.origins.join(', ') || 'no origin';
  return `the run's key is for ${origins}, so it was not sent here (policy_api_key_origins, api_key_origins)`;
}
