/** The record of a policy, which a trainer sets. */
import { z } from 'zod';

/**
 * Workers send requests in the states `serving` and `pausing`, and none in `updating` and `asleep`. Timeouts run only in `serving`.
 * `pausing`: the servers may pause at any time and answer later. `updating`: the weights change. `asleep`: the GPUs do other work.
 */
export const PolicyState = z.enum(['serving', 'pausing', 'updating', 'asleep']);

export const PolicyName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'expected letters, digits, dot, - and _, at most 64');

/** Name of the policy that runs without a policy name follow, if the policy shares an endpoint with the run or has none. */
export const DEFAULT_POLICY = 'default';

/** Maximum number of versions in a record; policy_set.lua has the same number. */
const MOST_VERSIONS = 100;

export const PolicyRecord = z.object({
  name: PolicyName,
  version: z.string().nullable(),
  /** The last {@link MOST_VERSIONS} versions, newest last. */
  versions: z.array(z.string()),
  /** Endpoints of the policy; empty: each run uses its own. */
  endpoints: z.array(z.string()),
  /** Model for runs that follow the policy by name, such as the LoRA adapter of this version; null: each run uses its configured model. */
  model: z.string().nullable().default(null),
  state: PolicyState,
  /** Time of the last change in milliseconds since the epoch, by the clock of Redis. */
  changed_at: z.number(),
});
export type PolicyRecord = z.infer<typeof PolicyRecord>;

/** A URL without user and password: `fetch` refuses a URL with a user, and logs would show the password. */
export const EndpointUrl = z.url().refine((text) => !/^[a-z]+:\/\/[^/]*@/i.test(text), {
  error: 'expected a URL without user and password; the key goes into SWEFARM_POLICY_API_KEY',
});

/** A change of a policy; absent fields stay unchanged. */
export const PolicyChange = z
  .strictObject({
    version: z.string().min(1).max(200).optional(),
    endpoints: z.array(EndpointUrl).max(1000).optional(),
    model: z.string().min(1).max(200).optional(),
    state: PolicyState.optional(),
  })
  .refine(
    (change) => Object.values(change).some((value) => value !== undefined),
    'expected version, endpoints, model or state',
  );
export type PolicyChange = z.infer<typeof PolicyChange>;

/** An endpoint in the report of a worker. */
export const EndpointView = z.object({
  url: z.string(),
  /** Number of rollouts of this worker that are bound to the endpoint. */
  load: z.number().int(),
  /** Seconds until the worker uses the endpoint again; 0: the worker uses it now. */
  aside_seconds: z.number(),
  /** Why the worker does not use the endpoint; null: the worker uses it. */
  reason: z.string().nullable(),
});
export type EndpointView = z.infer<typeof EndpointView>;

/**
 * Returns whether a run follows a policy. A run with a policy name follows this policy only. A run without a name follows `default` if that
 * policy shares an endpoint with the run or has none.
 */
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

/** Returns the model of a run. A run without a policy name keeps its configured model, which may be another model of the same endpoints. */
export const modelOfRun = (
  run: { name?: string | null | undefined; model: string },
  policy: Pick<PolicyRecord, 'model'> | null,
): string => (run.name && policy?.model) || run.model;

/** Removes the slashes at the end of a base URL. */
export const withoutSlash = (url: string): string => url.replace(/\/+$/, '');

/** Returns how many versions came after `version`; null: unknown; infinity: a full record no longer contains it. */
export function versionsBehind(
  record: Pick<PolicyRecord, 'versions'>,
  version: string | null,
): number | null {
  if (version === null) return null;
  const at = record.versions.lastIndexOf(version);
  if (at !== -1) return record.versions.length - 1 - at;
  return record.versions.length < MOST_VERSIONS ? null : Number.POSITIVE_INFINITY;
}
