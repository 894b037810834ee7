/** What is shown to an endpoint and what of it is shown to others: its client with the run's key, its address without a user. */
import { keyAt, type PolicyKey } from '@swefarm/shared';
import { openClient } from './connection.ts';
import type { PolicyDeps } from './policy.ts';
import type { Client } from './transport.ts';

/** The client of the endpoint that is asked, from turn to turn: to make one costs a tenth of a turn. */
export function keptClient({ apiKey, rolloutId, attempt, log }: PolicyDeps): (url: string) => Client {
  let kept: { url: string; client: Client } | null = null;
  return (url) => {
    if (kept?.url !== url) {
      const headers = { 'x-swefarm-rollout': rolloutId, 'x-swefarm-attempt': String(attempt) };
      kept = { url, client: openClient(url, apiKey, headers) };
      const why = withheld(apiKey, url);
      if (why) log.warn({ endpoint: withoutUser(url) }, why);
    }
    return kept.client;
  };
}

export function withoutUser(url: string): string {
  const parsed = new URL(url);
  parsed.username = '';
  parsed.password = '';
  return parsed.href.replace(/\/$/, '');
}

/** Endpoints like to quote the key that they refuse. */
export const redact = (text: string, apiKey: PolicyKey | null): string =>
  (apiKey ? text.replaceAll(apiKey.secret.reveal(), '[secret]') : text).slice(0, 300);

/** Why this endpoint is not shown the run's key; null when it is, or when there is none. */
export function withheld(apiKey: PolicyKey | null, url: string): string | null {
  if (apiKey === null || keyAt(apiKey, url) !== null) return null;
  const origins = apiKey.origins.join(', ') || 'no origin';
  return `the run's key is for ${origins}, so it was not sent here (policy_api_key_origins, api_key_origins)`;
}
