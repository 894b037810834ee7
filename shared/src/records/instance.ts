/** One dataset row in the form that the farm uses. */
import { z } from 'zod';
import { MOST } from './bounds.ts';
import { InstanceEnvironment } from './environment.ts';
import { HarborTask } from './harbor.ts';
import { Picture } from './picture.ts';
import { InstancePlan } from './plan.ts';
import { SetName } from './toolset.ts';

/** Family of a dataset row. The family determines the name of the image and the default grader. */
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
  'harbor',
  'custom',
]);
export type DatasetFamily = z.infer<typeof DatasetFamily>;

/** Findings of `swefarm health` for one image, grader and network. */
export const InstanceHealth = z.object({
  image_digest: z.string(),
  grader: z.string(),
  network: z.enum(['none', 'egress']),
  /** Number of evaluations of the gold patch that had a verdict. */
  times: z.number().int().positive(),
  /** Whether the gold patch resolved the instance in every evaluation. */
  gold_resolves: z.boolean(),
  /** Whether the unchanged tree resolves the instance, so that every patch gets a reward. Null: no verdict. */
  noop_resolves: z.boolean().nullable(),
  /** Longest duration of the tests with the gold patch, in seconds. */
  gold_seconds: z.number(),
  /** Counted tests that both passed and failed with the gold patch. */
  flaky: z.array(z.string()),
  /** Tests of FAIL_TO_PASS that are skipped or expected to fail with the gold patch; absent: unknown. */
  unpassed: z.array(z.string()).optional(),
  /** Whether the gold patch resolves the instance only with a network. */
  needs_egress: z.boolean(),
  /** Time of the check, ISO 8601 in UTC. */
  checked_at: z.string(),
});
export type InstanceHealth = z.infer<typeof InstanceHealth>;

/** Returns why the instance is broken; null if the gold patch resolves it and the unchanged tree does not. */
export function brokenBecause(health: InstanceHealth): string | null {
  if (!health.gold_resolves) {
    if (health.needs_egress) return 'gold needs the network';
    return health.flaky.length > 0
      ? `gold is not always resolved (flaky: ${health.flaky.slice(0, 3).join(', ')})`
      : 'gold is not resolved';
  }
  return health.noop_resolves ? 'the untouched tree is resolved already' : null;
}

const InstanceId = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/);

export const Instance = z.object({
  instance_id: InstanceId,
  /** The id that the agent sees, if `instance_id` reveals the solution. */
  shown_id: InstanceId.optional(),
  repo: z.string(),
  base_commit: z.string(),
  problem_statement: z.string(),
  hints_text: z.string().default(''),
  /** Pictures of the issue; a model gets them in this order after the text. */
  pictures: z.array(Picture).max(MOST.pictures).optional(),
  version: z.string().default(''),
  /** The gold patch, which the agent cannot see; empty if the dataset does not publish one. */
  patch: z.string().default(''),
  test_patch: z.string().default(''),
  FAIL_TO_PASS: z.array(z.string()),
  PASS_TO_PASS: z.array(z.string()),
  environment_setup_commit: z.string().optional(),
  created_at: z.string().optional(),
  family: DatasetFamily,
  /** Container image, from a column of the row or by the naming rule of the family. */
  image: z.string(),
  /** Evaluation script of the row, which replaces the table of test commands. */
  eval_script: z.string().optional(),
  test_cmd: z.union([z.string(), z.array(z.string())]).optional(),
  /** Command that runs before the tests, like `install` in the table of test commands. */
  install: z.string().optional(),
  log_parser: z.string().optional(),
  eval_type: z.enum(['pass_and_fail', 'fail_only']).optional(),
  /** Whether the gold patch resolves the instance only with a network. */
  needs_egress: z.boolean().default(false),
  environment: InstanceEnvironment.optional(),
  /** The evaluation plan from the reader of the family; absent: the plan is made from the columns above. */
  plan: InstancePlan.optional(),
  /** Present if the instance is a Harbor task. */
  harbor: HarborTask.optional(),
  /** Level that a worker must understand (needs.ts); absent: 1. */
  needs: z.number().int().nonnegative().optional(),
  /** Names of the prompt set and the toolset that the row chooses; absent: those of the run. */
  prompts: SetName.optional(),
  toolset: SetName.optional(),
  /** Findings of the instance registry when the run was submitted; not a part of the row. */
  health: z.array(InstanceHealth).optional(),
});
export type Instance = z.infer<typeof Instance>;
