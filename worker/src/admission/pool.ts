/** Determines which rollouts share a limit: those of one policy, or of the same endpoints if no trainer registered the policy. */
import { createHash } from 'node:crypto';
import {
  DEFAULT_POLICY,
  fixedPool,
  followsPolicy,
  type Policies,
  type PolicyConfig,
  type PolicyRecord,
} from '@swefarm/shared';

/** Endpoints of a policy; `serving`: requests are sent to them now. */
export type PoolEndpoints = { urls: readonly string[]; serving: boolean };

export type PoolName = {
  id: string;
  /** Whether the limit is a number of the run; otherwise the load of the endpoints determines it. */
  fixed: boolean;
  /** Reads the endpoints that the policy has now. */
  endpoints(): Promise<PoolEndpoints>;
};

/** Returns the pool of a run's rollouts; null: they play without admission. */
export async function poolOf(
  config: PolicyConfig,
  policies: Pick<Policies, 'get'>,
): Promise<PoolName | null> {
  if (config.admission === 'off') return null;
  const read = async (): Promise<PolicyRecord | null> => {
    const [record] = await policies.get([config.name ?? DEFAULT_POLICY]);
    return record && followsPolicy(config, record) ? record : null;
  };
  const record = await read();
  const own = record !== null && (config.name !== null || record.endpoints.length > 0);
  // Without an endpoint no pool is needed: the agent refuses the rollout.
  if (!own && config.urls.length === 0) return null;
  const policy = own ? record.name : nameOf(config.urls);
  const fixed = config.admission !== 'auto';
  return {
    id: config.admission === 'auto' ? policy : fixedPool(policy, config.admission),
    fixed,
    async endpoints() {
      const now = await read();
      const urls = now && now.endpoints.length > 0 ? now.endpoints : config.urls;
      return { urls, serving: now === null || now.state === 'serving' };
    },
  };
}

/** Returns `host:port`, with the number of further endpoints and a digest of all if the address alone is not unique. */
function nameOf(urls: readonly string[]): string {
  const sorted = urls.toSorted();
  const [first = ''] = sorted;
  const { hostname, port, protocol, pathname } = new URL(first);
  const address = `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`;
  if (sorted.length === 1 && /^\/(v1\/?)?$/.test(pathname)) return address;
  const digest = createHash('sha256').update(sorted.join(' ')).digest('hex').slice(0, 6);
  return sorted.length === 1 ? `${address}-${digest}` : `${address}+${sorted.length - 1}-${digest}`;
}
