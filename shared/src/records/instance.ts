/** One dataset row in the farm's form. */
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

/** Findings of `swefarm health` for one image, grader and network. */
export const InstanceHealth = z.object({
  image_digest: z.string(),
  grader: z.string(),
  network: z.enum(['none', 'egress']),
  /** Evaluations of gold with a verdict. */
  times: z.number().int().positive(),
  /** Gold resolved in every evaluation. */
  gold_resolves: z.boolean(),
  /** The unchanged tree resolved, so the instance rewards every patch. Null: no verdict. */
  noop_resolves: z.boolean().nullable(),
  /** Longest duration of gold's tests. */
  gold_seconds: z.number(),
  /** Counted tests that gold both passed and failed. */
  flaky: z.array(z.string()),
  /** Tests of FAIL_TO_PASS that are skipped or expected to fail with gold; absent: unknown. */
  unpassed: z.array(z.string()).optional(),
  /** Gold resolves only with a network. */
  needs_egress: z.boolean(),
  /** ISO 8601, UTC. */
  checked_at: z.string(),
});
export type InstanceHealth = z.infer<typeof InstanceHealth>;

/** Returns why the instance is broken; null if gold resolves and the unchanged tree does not. */
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
  /** Replaces `instance_id` for the agent, if that reveals the solution. */
  shown_id: z.string().optional(),
  repo: z.string(),
  base_commit: z.string(),
  problem_statement: z.string(),
  hints_text: z.string().default(''),
  /** Pictures of the issue, in order; a model gets them after the text. */
  pictures: z.array(Picture).max(MOST.pictures).optional(),
  version: z.string().default(''),
  /** The gold patch; empty if the dataset withholds it. Hidden from the agent. */
  patch: z.string().default(''),
  test_patch: z.string().default(''),
  FAIL_TO_PASS: z.array(z.string()),
  PASS_TO_PASS: z.array(z.string()),
  environment_setup_commit: z.string().optional(),
  created_at: z.string().optional(),
  family: DatasetFamily,
  /** Container image: the row's column, else the family's naming rule. */
  image: z.string(),
  /** The row's evaluation, which replaces the table of test commands. */
  eval_script: z.string().optional(),
  test_cmd: z.union([z.string(), z.array(z.string())]).optional(),
  /** Command before the tests, as `install` of the table. */
  install: z.string().optional(),
  log_parser: z.string().optional(),
  eval_type: z.enum(['pass_and_fail', 'fail_only']).optional(),
  /** Whether the evaluation of gold needs the network. */
  needs_egress: z.boolean().default(false),
  environment: InstanceEnvironment.optional(),
  /** The evaluation plan from the reader of the family; absent: the plan is made from the columns above. */
  plan: InstancePlan.optional(),
  /** Level for workers (needs.ts); absent: 1. */
  needs: z.number().int().nonnegative().optional(),
  /** Findings of the registry of instances at submit; not a part of the row. */
  health: z.array(InstanceHealth).optional(),
});
export type Instance = z.infer<typeof Instance>;
