/** A limit of staleness counts versions that a trainer tells of: without its word the limit does nothing, and one must be told so. */
import { DEFAULT_POLICY, type Farm, followsPolicy, type RunRecord } from '@swefarm/shared';

/** What to say of a run whose limit has nothing to count; null: all is well. */
export async function idleStaleness(
  { max_staleness: most, policy }: Pick<RunRecord, 'max_staleness' | 'policy'>,
  farm: Pick<Farm, 'policies'>,
): Promise<string | null> {
  if (most === null) return null;
  const name = policy?.name ?? DEFAULT_POLICY;
  const [record] = policy ? await farm.policies.get([name]) : [];
  if (policy && record && followsPolicy(policy, record) && record.version !== null) return null;
  return (
    `max_staleness ${most} has no effect: nobody has told of versions of the policy "${name}" that this run follows; ` +
    'tell each with PUT /policy at the gateway, or swefarm policy set --policy-version NAME'
  );
}
