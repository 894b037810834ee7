/** One dataset row as the whole farm sees it, whatever file it came from. */
import { z } from 'zod';
import { MOST } from './bounds.ts';
import { InstanceEnvironment } from './environment.ts';
import { Picture } from './picture.ts';
import { InstancePlan } from './plan.ts';

/** The family decides image naming and the default grader. */
export const DatasetFamily = z.enum([
  'swebench',
  'swegym',
  'swesmith',
  'r2e-gym',
  'swe-rebench',
  'swe-rebench-v2',
  'swe-bench-pro',
  'swe-bench-live',
  'multi-swe',
  'scale-swe',
  'swe-lego',
  'open-swe',
  'nemotron',
  'custom',
]);
export type DatasetFamily = z.infer<typeof DatasetFamily>;

/** What was found out about an instance by running it: facts of one image, one grader and one kind of network. */
export const InstanceHealth = z.object({
  image_digest: z.string(),
  grader: z.string(),
  network: z.enum(['none', 'egress']),
  /** Evaluations of gold that gave a verdict; flakiness shows only in several. */
  times: z.number().int().positive(),
  /** Gold was resolved every time. */
  gold_resolves: z.boolean(),
  /** The untouched tree was; such an instance rewards everybody. Null: it gave no verdict. */
  noop_resolves: z.boolean().nullable(),
  /** Seconds of gold's tests, the longest. */
  gold_seconds: z.number(),
  /** Tests of FAIL_TO_PASS and PASS_TO_PASS that gold passed once and failed once. */
  flaky: z.array(z.string()),
  /** Tests of FAIL_TO_PASS that gold leaves skipped or expected to fail; absent: nobody looked. */
  unpassed: z.array(z.string()).optional(),
  /** Gold is resolved with a network and is not without one. */
  needs_egress: z.boolean(),
  /** ISO 8601, UTC. */
  checked_at: z.string(),
});
export type InstanceHealth = z.infer<typeof InstanceHealth>;

/** Why nobody should learn from the instance; null when gold resolves and nothing does not. */
export function brokenBecause(health: InstanceHealth): string | null {
  if (!health.gold_resolves) {
    if (health.needs_egress) return 'gold needs the network';
    return health.flaky.length > 0
      ? `gold is not always resolved (flaky: ${health.flaky.slice(0, 3).join(', ')})`
      : 'gold is not resolved';
  }
  return health.noop_resolves ? 'the untouched tree is resolved already' : null;
}

export const Instance = z.object({
  instance_id: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/),
  /** What the agent is told in place of `instance_id`, where that tells the answer. */
  shown_id: z.string().optional(),
  repo: z.string(),
  base_commit: z.string(),
  problem_statement: z.string(),
  hints_text: z.string().default(''),
  /** What the issue shows beside its text, in its order; a model gets them after the text. */
  pictures: z.array(Picture).max(MOST.pictures).optional(),
  version: z.string().default(''),
  /** The gold patch; empty when the dataset withholds it. Never shown to the agent. */
  patch: z.string().default(''),
  test_patch: z.string().default(''),
  FAIL_TO_PASS: z.array(z.string()),
  PASS_TO_PASS: z.array(z.string()),
  environment_setup_commit: z.string().optional(),
  created_at: z.string().optional(),
  family: DatasetFamily,
  /** Container image, resolved by the reader (the row's own column, else the family's naming rule). */
  image: z.string(),
  /** Rows that carry their own evaluation win over the table of test commands. */
  eval_script: z.string().optional(),
  test_cmd: z.union([z.string(), z.array(z.string())]).optional(),
  /** The line the eval script runs before the tests, as the table's `install`. */
  install: z.string().optional(),
  log_parser: z.string().optional(),
  eval_type: z.enum(['pass_and_fail', 'fail_only']).optional(),
  /** Evaluation needs the network for this instance's gold patch. */
  needs_egress: z.boolean().default(false),
  /** What its sandboxes need beyond the run's settings; absent: nothing. */
  environment: InstanceEnvironment.optional(),
  /** Its whole evaluation, made by the reader of its family; absent: planned by the columns above. */
  plan: InstancePlan.optional(),
  /** The level that a worker must know (needs.ts); absent: 1. */
  needs: z.number().int().nonnegative().optional(),
  /** No part of the row: what the registry of instances knew when the run was submitted. */
  health: z.array(InstanceHealth).optional(),
});
export type Instance = z.infer<typeof Instance>;
