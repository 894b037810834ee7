/** The report on one patch: the official verdict, and separately whether the verdict can be trusted. */
import { z } from 'zod';
import { MOST } from './bounds.ts';

/** Ids of the passed and failed tests of one category, as in the report.json of the harness. */
const Bucket = z.object({ success: z.array(z.string()), failure: z.array(z.string()) });

export const PatchState = z.enum([
  'none',
  'empty',
  'too_large', // over 10 MiB, or too large for the container
  'applied',
  'not_applied',
]);

export const EvaluationEnd = z.enum([
  'not_run',
  'completed',
  'timed_out',
  'tests_cannot_start', // the log contains no readable outcome, or a step after the patch failed
  'parser_failed', // the dataset's program failed, its output is invalid, or the log exceeds `log_limit`
  'sandbox_killed', // a limit of the sandbox or a process inside killed the sandbox, or the tests filled the disk
]);

/** The number that a dataset's grader computed; numbers outside these bounds are errors. */
export const Score = z.number().min(-MOST.score).max(MOST.score);

/** Named parts of a score. The sum of the parts may differ from the score. */
export const RewardComponents = z
  .record(
    z.string().regex(/^[\w.:/ -]{1,64}$/, { error: 'expected at most 64 letters, digits or ._:/ -' }),
    Score,
  )
  .refine((parts) => Object.keys(parts).length <= MOST.components, {
    error: `expected at most ${MOST.components} parts`,
  });
export type RewardComponents = z.infer<typeof RewardComponents>;

export const Report = z.object({
  format: z.literal('swefarm-report-1'),
  instance_id: z.string(),
  patch_state: PatchState,
  evaluation: EvaluationEnd,
  /** Verdict of the grader; null if nothing was judged, or if the grader gives only a score. */
  resolved: z.boolean().nullable(),
  /** Score of the grader, instead of a verdict or in addition; absent or null: none. */
  score: Score.nullable().optional(),
  reward_components: RewardComponents.optional(),
  tests_status: z
    .object({
      FAIL_TO_PASS: Bucket,
      PASS_TO_PASS: Bucket,
      FAIL_TO_FAIL: Bucket,
      PASS_TO_FAIL: Bucket,
    })
    .nullable(),
  /** Why the outcomes are unknown: a code (`no_markers`, `raises`, …) or a description; absent: the grader read the outcomes. */
  unreadable: z.string().optional(),
  /** All tests of the log with the status that the parser found (usually PASSED, FAILED, ERROR, SKIPPED or XFAIL). */
  status_map: z.record(z.string(), z.string()).nullable(),
  /** Number of tests that `status_map` omits because of its limits; the verdict includes all tests. */
  statuses_omitted: z.number().int().positive().optional(),
  /** Name of the command that applied the patch. */
  applied_with: z.string().nullable(),
  test_exit_code: z.number().int().nullable(),
  grader: z.string(),
  parser: z.string().nullable(),
  image_digest: z.string().nullable(),
  trust: z.object({
    level: z.enum(['clean', 'suspicious', 'forged']),
    reasons: z.array(z.string()),
  }),
});
export type Report = z.infer<typeof Report>;
