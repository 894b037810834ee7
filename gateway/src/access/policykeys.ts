/** Which key of the policy a caller's run gets, for which origins, and under which name Redis stores it. */

import { asTree, merge, type SettingsTree } from '@swefarm/runs';
import { type Farm, type Log, originOf, originsOf, type PolicyKey } from '@swefarm/shared';
import type { Caller } from './callers.ts';
import { digest } from './digest.ts';

/** Origins that the operator lets have the key of this caller. `operatorUrls`: endpoints by `serve` and the caller's entry. */
export const keyOrigins = (caller: Caller, operatorUrls: unknown): string[] => [
  ...new Set([...originsOf(operatorUrls), ...caller.apiKeyOrigins]),
];

/**
 * The operator's key, for the origins that the operator named: no caller chooses them. A run that names an endpoint of another
 * origin gets no key at all; where a policy moves later, the worker sends the key to these origins only.
 */
export function keyFor(caller: Caller, operatorUrls: unknown, asked: unknown): PolicyKey | null {
  if (caller.apiKey === null) return null;
  const origins = keyOrigins(caller, operatorUrls);
  const foreign = Array.isArray(asked) && asked.some((url) => !origins.includes(originOf(url) ?? ''));
  return origins.length === 0 || foreign ? null : { secret: caller.apiKey, origins };
}

/** Warns of callers whose key no endpoint gets, so that nobody looks for it at the endpoint. */
export function warnOfIdleKeys(callers: readonly Caller[], settings: SettingsTree, log: Log): void {
  for (const caller of callers) {
    const { urls } = asTree(merge(merge({}, settings), caller.run).policy);
    if (caller.apiKey === null || keyOrigins(caller, urls).length > 0) continue;
    log.warn(
      { caller: caller.name },
      "the policy key of this caller is for no endpoint and is never sent: name endpoints with serve's --policy-url, run.policy.urls or api_key_origins of its entry, or policy_api_key_origins",
    );
  }
}

/** The name that a run's record carries; the same key for other origins has another name. */
export async function storeKey(farm: Farm, key: PolicyKey | null, seconds: number): Promise<string | null> {
  if (key === null) return null;
  const name = `gateway-${digest([key.secret.reveal(), key.origins])}`;
  await farm.secrets.put(name, key, seconds);
  return name;
}
