/** API keys of policies: which run uses a key, which origins receive the key, and the name under which Redis stores the key. */

import { asTree, type SettingsTree } from '@swefarm/runs';
import { type Farm, type Log, originOf, originsOf, type PolicyKey } from '@swefarm/shared';
import { type Caller, operatorSettings } from './callers.ts';
import { digest } from './digest.ts';

/** Returns the origins that may receive this caller's key. `operatorUrls`: endpoints of `serve` and of the caller's entry. */
export const keyOrigins = (caller: Caller, operatorUrls: unknown): string[] => [
  ...new Set([...originsOf(operatorUrls), ...caller.apiKeyOrigins]),
];

/**
 * Returns the operator's key with the origins that the operator names. Returns null without a key or origins, and if `requestedUrls` has
 * an endpoint of another origin. If the policy moves later, workers still send the key to these origins only.
 */
export function keyFor(caller: Caller, operatorUrls: unknown, requestedUrls: unknown): PolicyKey | null {
  if (caller.apiKey === null) return null;
  const origins = keyOrigins(caller, operatorUrls);
  const foreign =
    Array.isArray(requestedUrls) && requestedUrls.some((url) => !origins.includes(originOf(url) ?? ''));
  return origins.length === 0 || foreign ? null : { secret: caller.apiKey, origins };
}

/** Warns of callers whose key is sent to no endpoint. */
export function warnOfIdleKeys(callers: readonly Caller[], settings: SettingsTree, log: Log): void {
  for (const caller of callers) {
    const { urls } = asTree(operatorSettings(settings, caller).policy);
    if (caller.apiKey === null || keyOrigins(caller, urls).length > 0) continue;
    log.warn(
      { caller: caller.name },
      "the policy key of this caller is sent to no endpoint: name endpoints with serve's --policy-url, run.policy.urls or api_key_origins of its entry, or policy_api_key_origins",
    );
  }
}

/** Stores the key for `seconds` and returns the name of the key, which run records contain; null without a key. */
export async function storeKey(farm: Farm, key: PolicyKey | null, seconds: number): Promise<string | null> {
  if (key === null) return null;
  const name = `gateway-${digest([key.secret.reveal(), key.origins])}`;
  await farm.secrets.put(name, key, seconds);
  return name;
}
