/** A dry run: the farm without model, sandbox and grading, whose rollouts are answered from stored ones, with the faults of a script. */
import { z } from 'zod';
import { FAILURE_CLASSES } from '../failures/failure.ts';
import { RewardFacts } from './result.ts';

const seconds = z.number().nonnegative().max(86_400);

/** Seconds: a number, equally distributed, log-normal around the median, or a factor of the stored time of agent and evaluation. */
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

/** When a fault applies: always without a field, else if all fields agree. Counts start at 1. */
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
    /** Attempts that fail; absent: all. */
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
    /** Rollouts of the group that are judged; the others fail. */
    short: z.number().int().nonnegative().optional(),
    cancel: z.literal(true).optional(),
  })
  .refine(oneOf(OF_GROUP), exactlyOne(OF_GROUP));

const OF_HTTP = ['cut', 'status', 'delay', 'gone', 'repeat'] as const;
const HttpFault = z
  .strictObject({
    ...when,
    /** Start of the path. */
    route: z.string().startsWith('/').default('/'),
    cut: z.literal('answer').optional(),
    status: z.union([z.literal(429), z.literal(500), z.literal(502), z.literal(503)]).optional(),
    retry_after: seconds.optional(),
    delay: Delay.optional(),
    /** Seconds in which the gateway closes every connection. */
    gone: seconds.optional(),
    repeat: z.literal(true).optional(),
  })
  .refine(oneOf(OF_HTTP), exactlyOne(OF_HTTP));
export type HttpFault = z.infer<typeof HttpFault>;

export const DryRunScript = z.strictObject({
  seed: z.union([z.string(), z.number()]).default(0),
  /** Rollouts that run at the same time. */
  concurrency: z.number().int().positive().max(4_096).default(256),
  delay: Delay.default(0),
  model: z.string().optional(),
  /** `announced`: that of the policy's record, else of the run, else the stored ones. */
  version: z.string().default('announced'),
  /** Whether failures are retried by the failure table, with its delays; false: the first one ends the rollout. */
  retries: z.boolean().default(false),
  rollouts: z.array(RolloutFault).default([]),
  groups: z.array(GroupFault).default([]),
  http: z.array(HttpFault).default([]),
});
export type DryRunScript = z.infer<typeof DryRunScript>;

/** A stored rollout. `artifact`: absolute path of its artifact. */
export const StoredRollout = z.object({
  rollout_id: z.string(),
  instance_id: z.string(),
  seconds: z.number(),
  facts: RewardFacts,
  artifact: z.string(),
});
export type StoredRollout = z.infer<typeof StoredRollout>;

/** The file that `swefarm serve --replay` writes for its worker. `any`: unknown instances get rollouts of others. */
export const DryRun = z.object({
  format: z.literal('swefarm-dry-run-1'),
  script: DryRunScript,
  any: z.boolean(),
  rollouts: z.array(StoredRollout),
});
export type DryRun = z.infer<typeof DryRun>;
