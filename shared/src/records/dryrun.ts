/** A dry run: a farm without model, sandbox and grading. It answers with stored rollouts, which a script of faults changes. */
import { z } from 'zod';
import { FAILURE_CLASSES } from '../failures/failure.ts';
import { RewardFacts } from './result.ts';

const seconds = z.number().nonnegative().max(86_400);

/** Delay in seconds: fixed, uniform, log-normal around the median, or a multiple of the stored time of agent and evaluation. */
export const Delay = z.union(
  [
    seconds,
    z.strictObject({ from: seconds, to: seconds }),
    z.strictObject({ median: seconds, sigma: z.number().positive().max(5).default(0.5) }),
    z.strictObject({ stored: z.number().nonnegative().max(1_000) }),
  ],
  { error: 'expected seconds, {from, to}, {median, sigma} or {stored: factor}' },
);
export type Delay = z.infer<typeof Delay>;

/** When a fault applies: all given conditions must be true; without conditions it always applies. Counts start at 1. */
const when = {
  chance: z.number().min(0).max(1).optional(),
  nth: z.array(z.number().int().positive()).optional(),
  every: z.number().int().positive().optional(),
};
export type When = { chance?: number | undefined; nth?: number[] | undefined; every?: number | undefined };

const oneOf = (names: readonly string[]) => (fault: object) =>
  names.filter((name) => name in fault).length === 1;
const exactlyOne = (names: readonly string[]) => ({ error: `expected exactly one of ${names.join(', ')}` });

const OF_ROLLOUT = ['fail', 'reward', 'cancel', 'ids', 'versions', 'delay'] as const;
const RolloutFault = z
  .strictObject({
    ...when,
    fail: z.enum(FAILURE_CLASSES).optional(),
    /** Number of attempts that fail; absent: all. */
    attempts: z.number().int().positive().optional(),
    reward: z.literal('none').optional(),
    cancel: z.literal(true).optional(),
    ids: z.literal('not_contiguous').optional(),
    versions: z.array(z.string()).min(1).optional(),
    delay: Delay.optional(),
  })
  .refine(oneOf(OF_ROLLOUT), exactlyOne(OF_ROLLOUT));
export type RolloutFault = z.infer<typeof RolloutFault>;

const OF_GROUP = ['short', 'cancel'] as const;
const GroupFault = z
  .strictObject({
    ...when,
    /** Number of rollouts of the group that are judged. The other rollouts fail. */
    short: z.number().int().nonnegative().optional(),
    cancel: z.literal(true).optional(),
  })
  .refine(oneOf(OF_GROUP), exactlyOne(OF_GROUP));

const OF_HTTP = ['cut', 'status', 'delay', 'gone', 'repeat'] as const;
const HttpFault = z
  .strictObject({
    ...when,
    /** Prefix of the request's path. */
    route: z.string().startsWith('/').default('/'),
    cut: z.literal('answer').optional(),
    status: z.union([z.literal(429), z.literal(500), z.literal(502), z.literal(503)]).optional(),
    retry_after: seconds.optional(),
    delay: Delay.optional(),
    /** Seconds during which the gateway closes every connection. */
    gone: seconds.optional(),
    repeat: z.literal(true).optional(),
  })
  .refine(oneOf(OF_HTTP), exactlyOne(OF_HTTP));
export type HttpFault = z.infer<typeof HttpFault>;

export const DryRunScript = z.strictObject({
  seed: z.union([z.string(), z.number()]).default(0),
  /** Maximum number of rollouts that run at the same time. */
  concurrency: z.number().int().positive().max(4_096).default(256),
  delay: Delay.default(0),
  model: z.string().optional(),
  /** Policy version. `announced`: the version in the policy's record, else the run's, else the stored versions. */
  version: z.string().default('announced'),
  /** Whether the failure table decides on retries, with its delays; false: the first failure ends the rollout. */
  retries: z.boolean().default(false),
  rollouts: z.array(RolloutFault).default([]),
  groups: z.array(GroupFault).default([]),
  http: z.array(HttpFault).default([]),
});
export type DryRunScript = z.infer<typeof DryRunScript>;

/** A stored rollout. `artifact`: absolute path of its artifact file. */
export const StoredRollout = z.object({
  rollout_id: z.string(),
  instance_id: z.string(),
  seconds: z.number(),
  facts: RewardFacts,
  artifact: z.string(),
});
export type StoredRollout = z.infer<typeof StoredRollout>;

/** The file that `swefarm serve --replay` writes for its worker. `any`: an unknown instance gets rollouts of other instances. */
export const DryRun = z.object({
  format: z.literal('swefarm-dry-run-1'),
  script: DryRunScript,
  any: z.boolean(),
  rollouts: z.array(StoredRollout),
});
export type DryRun = z.infer<typeof DryRun>;
