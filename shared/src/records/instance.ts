/** One dataset row as the whole farm sees it, whatever file it came from. */
import { z } from 'zod';
import { InstanceHealth } from './health.ts';

/** The family decides image naming and the default grader. */
export const DatasetFamily = z.enum(['swebench', 'swegym', 'swesmith', 'custom']);
export type DatasetFamily = z.infer<typeof DatasetFamily>;

export const Instance = z.object({
  instance_id: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/),
  repo: z.string(),
  base_commit: z.string(),
  problem_statement: z.string(),
  hints_text: z.string().default(''),
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
  /** No part of the row: what the registry of instances knew when the run was submitted. */
  health: z.array(InstanceHealth).optional(),
});
export type Instance = z.infer<typeof Instance>;
