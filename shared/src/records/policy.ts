/** What a trainer reports of its policy: which weights it serves, where, and whether they can be asked now. */
import { z } from 'zod';

/** `updating`: new weights are on their way; `asleep`: the GPUs do something else. Nothing is sent in either. */
export const PolicyState = z.enum(['serving', 'updating', 'asleep']);
export type PolicyState = z.infer<typeof PolicyState>;

export const PolicyName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'expected letters, digits, dot, - and _, at most 64');

/** The policy that runs follow when they name none and share an endpoint with it. */
export const DEFAULT_POLICY = 'default';

/** Versions that a record keeps, as policy_set.lua has it. */
const MOST_VERSIONS = 100;

export const PolicyRecord = z.object({
  name: PolicyName,
  version: z.string().nullable(),
  /** Versions in the order in which they came, newest last; the last {@link MOST_VERSIONS}. */
  versions: z.array(z.string()),
  /** Empty: each run's own. */
  endpoints: z.array(z.string()),
  state: PolicyState,
  /** Milliseconds since the epoch, by the clock of Redis. */
  changed_at: z.number(),
});
export type PolicyRecord = z.infer<typeof PolicyRecord>;

/** What one call changes; what it does not name stays. */
export const PolicyChange = z
  .strictObject({
    version: z.string().min(1).max(200).optional(),
    endpoints: z.array(z.url()).max(1000).optional(),
    state: PolicyState.optional(),
  })
  .refine(
    (change) => Object.values(change).some((value) => value !== undefined),
    'expected version, endpoints or state',
  );
export type PolicyChange = z.infer<typeof PolicyChange>;

/** One endpoint as one worker sees it. */
export const EndpointView = z.object({
  url: z.string(),
  /** Rollouts of this worker that are bound to it. */
  load: z.number().int(),
  /** Seconds until it is tried again; 0 while it is in use. */
  aside_seconds: z.number(),
  /** What it did last to be set aside; null when it never was, or answered since. */
  reason: z.string().nullable(),
});
export type EndpointView = z.infer<typeof EndpointView>;

/** Whether a run follows what is said of a policy: it names it, or it names none, this is `default`, and the two share an endpoint or it has none of its own. */
export function followsPolicy(
  run: { name?: string | null | undefined; urls: readonly string[] },
  policy: Pick<PolicyRecord, 'name' | 'endpoints'>,
): boolean {
  if (run.name) return run.name === policy.name;
  if (policy.name !== DEFAULT_POLICY) return false;
  const own = run.urls.map(withoutSlash);
  return (
    policy.endpoints.length === 0 || policy.endpoints.some((endpoint) => own.includes(withoutSlash(endpoint)))
  );
}
/** A base URL as paths are appended to it, and as two of them are compared. */
export const withoutSlash = (url: string): string => url.replace(/\/+$/, '');

/**
 * How many versions lie between the one a rollout began with and the present one; null when that is not known. One that a full record
 * no longer has is behind by more than it keeps.
 */
export function versionsBehind(
  record: Pick<PolicyRecord, 'versions'>,
  version: string | null,
): number | null {
  if (version === null) return null;
  const at = record.versions.lastIndexOf(version);
  if (at !== -1) return record.versions.length - 1 - at;
  return record.versions.length < MOST_VERSIONS ? null : Number.POSITIVE_INFINITY;
}
